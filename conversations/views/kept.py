"""What a person asked to have remembered: seen, added to, corrected, pinned, forgotten; and kept out of a turn."""

from uuid import UUID

from django.contrib.messages import success
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from conversations import facts, keeping
from conversations.access import PersonRequest, person_required, turn_or_404
from conversations.finding import with_places
from conversations.views import frame
from memory.knowledge import pin_fact
from memory.models import MemoryNode

PER_PAGE = 50


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def kept(request: PersonRequest) -> HttpResponse:
    """The page; a POST keeps what was written down on it."""
    if request.method != "POST":
        return _page(request)
    try:
        facts.keep(owner=request.user, words=_words(request), country=frame.country_of(request))
    except keeping.NothingToKeep as error:
        return _page(request, note=str(error), draft=_words(request), status=422)
    except facts.NotKept as error:
        return _page(request, card=error)
    success(request, "Kept.")
    return redirect("kept")


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def correct(request: PersonRequest, node_id: UUID) -> HttpResponse:
    """A form for one fact, and what is sent with it."""
    node = _fact_or_404(request, node_id)
    if request.method != "POST":
        return frame.page(request, "kept/correct.html", {"fact": node, "draft": node.content})
    try:
        facts.correct(owner=request.user, node=node, words=_words(request), country=frame.country_of(request))
    except keeping.NothingToKeep as error:
        context = {"fact": node, "draft": _words(request), "note": str(error)}
        return frame.page(request, "kept/correct.html", context, 422)
    except facts.NotKept as error:
        return _page(request, card=error)
    success(request, "Corrected.")
    return redirect(f"/kept/#kept-{node.pk}")


@require_POST
@person_required
def pin(request: PersonRequest, node_id: UUID) -> HttpResponse:
    node = _fact_or_404(request, node_id)
    pin_fact(node=node, pinned="pinned" not in node.tags)
    return redirect(f"/kept/#kept-{node.pk}")


@require_POST
@person_required
def forget(request: PersonRequest, node_id: UUID) -> HttpResponse:
    keeping.forget(owner=request.user, node=_fact_or_404(request, node_id))
    success(request, "Forgotten. The conversation it was said in is as it was.")
    return redirect("kept")


@require_POST
@person_required
def keep_turn(request: PersonRequest, turn_id: UUID) -> HttpResponse:
    """Keep what was said in a turn; for htmx a line that takes the place of the button."""
    context: dict[str, object] = {}
    try:
        context["fact"] = keeping.keep_turn(turn=turn_or_404(request, turn_id))
    except keeping.NothingToKeep as error:
        context["note"] = str(error)
    if request.htmx:
        return render(request, "kept/said.html", context)
    return redirect("kept")


def _page(
    request: PersonRequest,
    *,
    note: str = "",
    draft: str = "",
    card: facts.NotKept | None = None,
    status: int = 200,
) -> HttpResponse:
    mine = MemoryNode.objects.for_owner(request.user).knowledge().newest_first()
    page = Paginator(mine, PER_PAGE).get_page(request.GET.get("page"))
    pinned = list(mine.pinned()) if page.number == 1 else []
    context = {
        "page": page,
        "pinned": with_places(request.user, pinned),
        "facts": with_places(request.user, [one for one in page if "pinned" not in one.tags]),
        "note": note,
        "draft": draft,
        "card": card.received if card else None,
    }
    return frame.page(request, "kept/page.html", context, status)


def _words(request: PersonRequest) -> str:
    return request.POST.get("words", "").replace("\r\n", "\n")


def _fact_or_404(request: PersonRequest, node_id: UUID) -> MemoryNode:
    return get_object_or_404(MemoryNode.objects.for_owner(request.user).knowledge(), pk=node_id)
