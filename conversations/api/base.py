"""What every view of the API stands on: who asks, and only their own rows."""

from typing import Any, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from conversations import receiving
from conversations.models import Session, Turn


def person(request: Request) -> User:
    """Who asks; the permission classes have made sure that it is somebody."""
    return cast(User, request.user)


def country_of(request: Request) -> str:
    """Whose help lines to show this person."""
    return receiving.person_country(person(request), request.headers.get("Accept-Language", ""))


def session_or_404(request: Request, session_id: UUID) -> Session:
    return get_object_or_404(
        Session.objects.for_owner(person(request)).select_related("imprint"), pk=session_id
    )


def turn_or_404(request: Request, turn_id: UUID) -> Turn:
    return get_object_or_404(Turn.objects.for_owner(person(request)).select_related("session"), pk=turn_id)


class View(GenericAPIView[Any]):
    """A view that answers with pages of rows."""

    ordering: tuple[str, ...] = ()

    def listed(self, rows: "QuerySet[Any]", serializer: Any) -> Response:
        """One page of the rows."""
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(serializer(page, many=True).data)
