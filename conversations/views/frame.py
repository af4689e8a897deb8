"""What stands around every page of somebody signed in: the list of sessions, by recency."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpResponse
from django.shortcuts import render

from conversations import receiving
from conversations.access import PersonRequest
from conversations.models import Session
from conversations.timeline import Group, grouped

LISTED = 40


def page(
    request: PersonRequest, template: str, context: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    """Render a page with the list of sessions beside it."""
    groups, more = sidebar(request.user)
    return render(request, template, {"groups": groups, "more": more, **(context or {})}, status=status)


def sidebar(owner: AbstractBaseUser) -> tuple[list[Group], bool]:
    """Pinned sessions, then the newest; and whether there are older ones."""
    mine = Session.objects.for_owner(owner).active().newest_first()
    newest = list(mine.filter(pinned=False)[: LISTED + 1])
    return grouped([*mine.filter(pinned=True)[:LISTED], *newest[:LISTED]]), len(newest) > LISTED


def country_of(request: PersonRequest) -> str:
    """Whose help lines to show this person."""
    return receiving.person_country(request.user, request.headers.get("Accept-Language", ""))
