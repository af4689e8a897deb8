"""Themes: the picture and the table, a theme's own page, and what a person does with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations import llm
from conversations.access import PersonRequest, person_required, theme_or_404
from conversations.forms import MergeThemesForm, ThemeNameForm
from conversations.models import Turn
from conversations.themes import kept, picture, reading, runs
from conversations.themes.models import ThemeRun
from conversations.themes.moves import Window
from conversations.themes.reading import Spot, Theme
from conversations.views import frame

PER_PAGE = 20
WINDOWS = {"week": "A week", "month": "A month", "season": "A season", "all": "Everything"}


@dataclass(frozen=True, slots=True)
class Band:
    """A theme and its path in the picture."""

    theme: Theme
    path: str


@require_safe
@person_required
def themes(request: PersonRequest) -> HttpResponse:
    """The page; without a model, looking costs nothing, so what is new is looked at by itself."""
    name = request.GET.get("window", "all")
    window = reading.window_of(request.user, name, now=timezone.now())
    view = reading.overview(request.user, window, everything=name not in reading.LENGTHS)
    run, fresh = runs.newest(request.user), runs.is_fresh(request.user)
    has_model = llm.described().configured
    if not fresh and not has_model and (run is None or run.state == ThemeRun.State.DONE):
        run = runs.start(owner=request.user)
    bands, axis = _picture(view.shown, None if name not in reading.LENGTHS else window)
    context = {
        "view": view,
        "window_name": name if name in WINDOWS else "all",
        "windows": WINDOWS,
        "bands": bands,
        "axis": axis,
        "hidden": [theme for theme in view.themes if theme.hidden],
        "run": run,
        "fresh": fresh,
        "has_model": has_model,
    }
    return frame.page(request, "themes/themes.html", context)


@require_safe
@person_required
def looking(request: PersonRequest) -> HttpResponse:
    """How far the look is, for the page to ask again and again; when it is over, the page is loaded anew."""
    run = runs.newest(request.user)
    if run is None or run.is_settled:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return render(request, "themes/themes.html#looking", {"run": run})


@require_POST
@person_required
def look(request: PersonRequest) -> HttpResponse:
    runs.start(owner=request.user)
    return redirect("themes")


@require_POST
@person_required
def stop(request: PersonRequest) -> HttpResponse:
    run = runs.newest(request.user)
    if run is not None:
        runs.stop(run=run)
    return redirect("themes")


@require_http_methods(["GET", "HEAD", "POST"])
@person_required
def theme(request: PersonRequest, theme_id: UUID) -> HttpResponse:
    """A theme with its turns; a POST gives it another name."""
    node = theme_or_404(request, theme_id)
    form = ThemeNameForm(request.POST or None, initial={"name": node.label})
    if request.method == "POST" and form.is_valid():
        kept.rename(theme=node, name=form.cleaned_data["name"])
        return redirect("theme", node.pk)
    window = reading.window_of(request.user, "all", now=timezone.now())
    view = reading.overview(request.user, window, everything=True)
    shown = next((one for one in view.themes if one.id == node.pk), None)
    spots = Paginator(shown.spots[::-1] if shown else (), PER_PAGE).get_page(request.GET.get("page"))
    bands, axis = _picture([shown] if shown else [], None)
    context = {
        "theme": shown,
        "node": node,
        "form": form,
        "others": [one for one in view.themes if one.id != node.pk],
        "spots": spots,
        "turns": _turns(request, list(spots)),
        "bands": bands,
        "axis": axis,
    }
    return frame.page(request, "themes/theme.html", context, 422 if form.errors else 200)


@require_POST
@person_required
def merge(request: PersonRequest, theme_id: UUID) -> HttpResponse:
    node = theme_or_404(request, theme_id)
    form = MergeThemesForm(request.POST)
    if not form.is_valid() or form.cleaned_data["into"] == node.pk:
        return redirect("theme", node.pk)
    into = theme_or_404(request, form.cleaned_data["into"])
    kept.merge(owner=request.user, theme=node, into=into)
    return redirect("theme", into.pk)


@require_POST
@person_required
def hide(request: PersonRequest, theme_id: UUID) -> HttpResponse:
    node = theme_or_404(request, theme_id)
    kept.hide(theme=node, hidden="show" not in request.POST)
    return redirect("themes")


def _picture(shown: Sequence[Theme], window: Window | None) -> tuple[list[Band], picture.Axis | None]:
    """The bands of these themes over the window, or over all the time they span."""
    if not shown:
        return [], None
    if window is not None:
        axis = picture.axis(window.start, window.end)
    else:
        axis = picture.axis(min(one.first for one in shown), max(one.last for one in shown))
    numbers = [picture.counts([spot.at for spot in one.within], axis) for one in shown]
    most = max(max(some) for some in numbers)
    return [Band(one, picture.band(some, most)) for one, some in zip(shown, numbers, strict=True)], axis


def _turns(request: PersonRequest, spots: list[Spot]) -> list[tuple[Spot, Turn | None]]:
    """The turns at these places; None where only memory has it, as with what another engram gave."""
    there = Turn.objects.for_owner(request.user).filter(session__in={spot.session_id for spot in spots})
    found: dict[tuple[UUID | None, int | None], Turn] = {
        (turn.session_id, turn.turn_index): turn for turn in there.select_related("session")
    }
    return [(spot, found.get((spot.session_id, spot.turn_index))) for spot in spots]
