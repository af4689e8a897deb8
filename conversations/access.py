"""Whose page this is: a signed-in person, and their own object or 404. Never 403, which would tell that it exists."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, ParamSpec, cast
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404, resolve_url
from django.views.decorators.cache import never_cache
from django_htmx.middleware import HtmxDetails

from conversations.models import ImportJob, Session, Turn
from conversations.themes import kept
from memory.models import MemoryNode

P = ParamSpec("P")


class PersonRequest(HttpRequest):
    """A request of somebody signed in."""

    user: User
    htmx: HtmxDetails


def person_required(
    view: Callable[Concatenate[PersonRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Only for somebody signed in, and never kept by a cache: these pages are private."""

    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return sign_in_first(request)
        return view(cast(PersonRequest, request), *args, **kwargs)

    update_wrapper(guarded, view)
    return never_cache(guarded)


def sign_in_first(request: HttpRequest) -> HttpResponse:
    """To the sign-in page and back to the page where the person was.

    A fragment is answered with 401 and HX-Redirect: a plain redirect would swap the sign-in page into it.
    """
    address = f"{resolve_url('account_login')}?{urlencode({'next': page_of(request)})}"
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(status=401, headers={"HX-Redirect": address})
    return HttpResponseRedirect(address)


def page_of(request: HttpRequest) -> str:
    """The page the person sees: this address for a GET, the one it was sent from for all else."""
    if request.method == "GET" and not request.htmx:  # type: ignore[attr-defined]
        return request.get_full_path()
    came_from = urlsplit(request.headers.get("Referer", ""))
    return came_from.path if came_from.netloc == request.get_host() and came_from.path else "/"


def session_or_404(request: PersonRequest, session_id: UUID) -> Session:
    return get_object_or_404(Session.objects.for_owner(request.user), pk=session_id)


def turn_or_404(request: PersonRequest, turn_id: UUID) -> Turn:
    return get_object_or_404(Turn.objects.for_owner(request.user).select_related("session"), pk=turn_id)


def import_or_404(request: PersonRequest, job_id: UUID) -> ImportJob:
    return get_object_or_404(ImportJob.objects.for_owner(request.user), pk=job_id)


def theme_or_404(request: PersonRequest, theme_id: UUID) -> MemoryNode:
    return get_object_or_404(kept.themes_of(request.user), pk=theme_id)
