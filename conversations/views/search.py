"""The search box: sessions and turns by recency and text match."""

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from conversations.access import PersonRequest, person_required
from conversations.models import Session, Turn
from conversations.timeline import grouped
from conversations.views import frame

MOST_SESSIONS = 20
MOST_TURNS = 30


@require_safe
@person_required
def search(request: PersonRequest) -> HttpResponse:
    """A page of sessions and turns. For the box beside the page: the list narrowed to sessions that match."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    if request.htmx and not query:
        groups, more = frame.sidebar(request.user)
        return render(request, "frame.html#groups", {"groups": groups, "more": more})
    turns = list(_turns(request, query)[:MOST_TURNS]) if query else []
    if request.htmx:
        sessions = _sessions(request, query, [turn.session_id for turn in turns])
        return render(request, "frame.html#groups", {"groups": grouped(sessions), "query": query})
    sessions = _sessions(request, query, []) if query else Session.objects.none()
    return frame.page(request, "search/results.html", {"query": query, "turns": turns, "sessions": sessions})


def _turns(request: PersonRequest, query: str) -> QuerySet[Turn]:
    said = Q()
    for word in query.split()[:8]:
        said &= Q(q__icontains=word) | Q(a__icontains=word)
    return Turn.objects.for_owner(request.user).filter(said).select_related("session").newest_first()


def _sessions(request: PersonRequest, query: str, holding: list[object]) -> QuerySet[Session]:
    """Sessions whose title matches, or that hold one of the turns found."""
    named = Q()
    for word in query.split()[:8]:
        named &= Q(title__icontains=word)
    mine = Session.objects.for_owner(request.user).active()
    return mine.filter(named | Q(pk__in=holding)).newest_first()[:MOST_SESSIONS]
