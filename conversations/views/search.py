"""The search page, narrowed as one types, and the box beside every page that narrows the list of sessions."""

from datetime import datetime, time, timedelta

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from conversations.access import PersonRequest, person_required
from conversations.finding import Searched, find, titled
from conversations.forms import SearchForm
from conversations.models import Session
from conversations.timeline import grouped
from conversations.views import frame
from memory.search import By, Limits, search

MOST_HITS = 30
LISTED_HITS = 60


@require_safe
@person_required
def search_page(request: PersonRequest) -> HttpResponse:
    """A page of what was found; only the finds themselves for htmx, which asks at each pause of typing."""
    form = SearchForm(request.GET)
    query = request.GET.get("q", "").strip()
    session = None
    searched = Searched([], [], "")
    if form.is_valid():
        asked = form.cleaned_data
        if asked["session"]:
            session = get_object_or_404(Session.objects.for_owner(request.user), pk=asked["session"])
        if query:
            searched = find(request.user, query, by=By(asked["by"]), limits=_limits(form), limit=MOST_HITS)
    context = {"form": form, "query": query[:200], "searched": searched, "within": session}
    if request.htmx:
        return render(request, "search/page.html#found", context)
    return frame.page(request, "search/page.html", context)


@require_safe
@person_required
def session_box(request: PersonRequest) -> HttpResponse:
    """The list beside the page, narrowed to sessions whose title or talk holds the words; a page without htmx."""
    query = request.GET.get("q", "").strip()
    if not request.htmx:
        return search_page(request)  # type: ignore[return-value]
    if not query:
        groups, more = frame.sidebar(request.user)
        return render(request, "frame.html#groups", {"groups": groups, "more": more})
    found = search(request.user, query, by=By.WORDS, limit=LISTED_HITS).found
    holding = Session.objects.for_owner(request.user).active()
    holding = holding.filter(pk__in={one.node.session_id for one in found})
    sessions = {session.pk: session for session in [*titled(request.user, query), *holding]}
    newest = sorted(sessions.values(), key=lambda session: session.last_turn_at, reverse=True)
    return render(request, "frame.html#groups", {"groups": grouped(newest), "query": query[:200]})


def _limits(form: SearchForm) -> Limits:
    """Whole days of the person's own calendar, both included."""
    asked = form.cleaned_data
    zone = timezone.get_current_timezone()
    since, until = asked["since"], asked["until"]
    return Limits(
        since=datetime.combine(since, time.min, tzinfo=zone) if since else None,
        until=datetime.combine(until + timedelta(days=1), time.min, tzinfo=zone) if until else None,
        node_types=(asked["type"],) if asked["type"] else (),
        session_id=asked["session"],
    )
