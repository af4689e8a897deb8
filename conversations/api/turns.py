"""Turns: read, say something and wait or not, stop, ask again; and recent talk."""

import asyncio
import re
from contextlib import suppress
from functools import partial
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.db import connection
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from knox.crypto import hash_token
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from conversations import receiving, services, stream, window
from conversations.api.base import View, country_of, person, session_or_404, turn_or_404
from conversations.forgetting import NotSettled, forget_turn
from conversations.models import Session, Turn
from conversations.serializers import (
    AnswerSerializer,
    NewTurnSerializer,
    RecentQuerySerializer,
    RecentSerializer,
    TurnSerializer,
)
from neuron_site.problems import Problem, database_is_away
from safety.help_lines import for_country
from safety.services import note_referrals

LONGEST_WAIT_S = 120
PREFER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`respond-async` answers 202 at once; `wait=N` waits N seconds at the most, 120 otherwise.",
)


class Turns(View):
    queryset = Turn.objects.none()
    serializer_class = TurnSerializer
    ordering = ("turn_index", "id")

    @extend_schema(responses={200: TurnSerializer(many=True)})
    def get(self, request: Request, session_id: UUID) -> Response:
        """The session's turns in order, those it shares with the session it was forked from first."""
        return self.listed(Turn.objects.in_thread(session_or_404(request, session_id)), TurnSerializer)

    @extend_schema(
        request=NewTurnSerializer,
        parameters=[PREFER],
        responses={200: AnswerSerializer, 201: AnswerSerializer, 202: AnswerSerializer},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Say something. 201 with the answer, 202 where it is still to come, 200 with help lines after a hard bell."""
        session = session_or_404(request, session_id)
        given = NewTurnSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        received = _receive(request, session, given.validated_data)
        if received.refused:
            raise Problem(status_code=503, code="safe_mode", detail=received.reply or "")
        if received.turn is None:
            if received.bell is not None and not received.bell._state.adding:
                note_referrals(hard=[received.bell.pk])
            return _rung(received)
        return _answered(request, received.turn)

    def handle_exception(self, exc: Exception) -> Response:
        """With the database away a message is screened all the same: who is in danger has the reply at once."""
        if self.request.method == "POST" and database_is_away(exc):
            heard = _heard_without_database(self.request, self.kwargs["session_id"])
            if heard is not None:
                return heard
        return super().handle_exception(exc)


class OneTurn(View):
    queryset = Turn.objects.none()
    serializer_class = TurnSerializer

    @extend_schema(responses={200: TurnSerializer})
    def get(self, request: Request, turn_id: UUID) -> Response:
        """One turn as it stands."""
        return Response(TurnSerializer(turn_or_404(request, turn_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, turn_id: UUID) -> Response:
        """Forget it for good, with all that memory made of it. Its place stays, empty, with status `forgotten`."""
        try:
            forget_turn(turn=turn_or_404(request, turn_id))
        except NotSettled as error:
            raise Problem(
                status_code=409,
                code="not_settled",
                detail="The turn is still being answered. Nothing was changed. Stop it first, or wait.",
            ) from error
        return Response(status=204)


class StopTurn(View):
    queryset = Turn.objects.none()
    serializer_class = TurnSerializer

    @extend_schema(request=None, responses={202: TurnSerializer})
    def post(self, request: Request, turn_id: UUID) -> Response:
        """Stop the answer; what was answered so far stays. Settles within two seconds."""
        turn = turn_or_404(request, turn_id)
        services.request_stop(turn=turn)
        return Response(TurnSerializer(turn_or_404(request, turn_id)).data, status=202)


class RetryTurn(View):
    queryset = Turn.objects.none()
    serializer_class = TurnSerializer

    @extend_schema(
        request=None,
        parameters=[PREFER],
        responses={201: AnswerSerializer, 202: AnswerSerializer},
    )
    def post(self, request: Request, turn_id: UUID) -> Response:
        """Answer once more; the answers there are stay."""
        turn = services.retry_turn(turn=turn_or_404(request, turn_id))
        return _answered(request, turn)


class Recent(View):
    queryset = Turn.objects.none()
    serializer_class = RecentSerializer
    pagination_class = None

    @extend_schema(parameters=[RecentQuerySerializer], responses={200: RecentSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """The newest exchanges over all sessions, by when they were said."""
        asked = RecentQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        return Response(window.recent_conversations(owner=person(request), **asked.validated_data))


def _heard_without_database(request: Request, session_id: UUID) -> Response | None:
    """The reply of a hard bell from a holder of a token; None for every other message."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    try:
        given = NewTurnSerializer(data=request.data)
    except APIException:
        return None
    if scheme.lower() != "bearer" or not token or not given.is_valid():
        return None
    received = receiving.receive_without_database(
        owner_id=None,
        session_id=session_id,
        text=given.validated_data["text"],
        client_key=given.validated_data.get("client_key") or uuid4().hex,
        accept_language=request.headers.get("Accept-Language", ""),
        token_digest=hash_token(token),
    )
    return _rung(received) if received is not None else None


def _rung(received: receiving.Received) -> Response:
    answer = {
        "action": "hard_bell",
        "reply": received.reply,
        "turn": None,
        "help_lines": received.resources,
    }
    return Response(AnswerSerializer(answer).data)


def _receive(request: Request, session: Session, said: dict[str, str]) -> receiving.Received:
    try:
        return receiving.receive(
            session=session,
            text=said["text"],
            client_key=said.get("client_key") or uuid4().hex,
            country=partial(country_of, request),
        )
    except receiving.UnusableMessage as error:
        raise Problem(status_code=422, code="unusable_message", detail=str(error)) from error
    except services.ClientKeyReused as error:
        raise Problem(
            status_code=409,
            code="client_key_reused",
            detail="This client_key came with another text before. That turn stands; this text was not taken.",
        ) from error


def _wait_seconds(request: Request) -> int:
    """How long to wait for an answer, by the Prefer header (RFC 7240)."""
    prefer = request.headers.get("Prefer", "").lower()
    if re.search(r"\brespond-async\b", prefer):
        return 0
    wait = re.search(r"\bwait\s*=\s*\"?(\d{1,4})\b", prefer)
    return min(int(wait.group(1)), LONGEST_WAIT_S) if wait else LONGEST_WAIT_S


def _answered(request: Request, turn: Turn) -> Response:
    turn = _settled(turn, _wait_seconds(request))
    if turn.help_lines:
        note_referrals(soft=[turn.pk])
    answer = {
        "action": turn.action,
        "reply": turn.a if turn.is_settled else None,
        "turn": turn,
        "help_lines": for_country(country_of(request)) if turn.help_lines else None,
    }
    status = 201 if turn.is_settled else 202
    return Response(
        AnswerSerializer(answer).data, status=status, headers={"Location": f"/api/v1/turns/{turn.pk}"}
    )


def _settled(turn: Turn, wait_s: int) -> Turn:
    """The turn once it is settled, or as it stands when the time is up. Holds no connection while it waits."""
    if turn.is_settled or not wait_s:
        return turn
    if not connection.in_atomic_block:
        connection.close()
    async_to_sync(_follow)(turn, wait_s)
    try:
        turn.refresh_from_db()
    except Turn.DoesNotExist:
        raise Http404 from None  # the session was deleted meanwhile
    return turn


async def _follow(turn: Turn, wait_s: int) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            async for _ in stream.read(turn):
                pass
