"""Neuron as somebody's remote engram: the HTTP contract, for holders of a token, each of whom sees one person's nodes.

Its errors are `{"error": …}`. It is a protocol between servers, described in docs/engram.md, and no part of the API
that the OpenAPI description covers.
"""

from datetime import datetime
from functools import partial
from typing import Any, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError, connection
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.urls import path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from knox.auth import TokenAuthentication
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.views import exception_handler as drf_exception_handler

from memory.engram import giving, taking, wire
from memory.engram.cursor import BadCursor, begin
from memory.engram.fields import LARGEST_INTEGER, WireError
from memory.models import MemoryNode
from memory.querysets import MOST_RECENT

MOST_NODES = 100_000
STANDARD_NODES = 10_000


@never_cache
@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """200 where this Neuron can take and give nodes."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
    except (DatabaseError, InterfaceError):
        return JsonResponse({"error": "the database does not answer"}, status=503)
    return JsonResponse({"status": "ok"})


class EngramView(APIView):
    """Only tokens: a browser's session has no business here."""

    schema = None
    authentication_classes = (TokenAuthentication,)

    def get_exception_handler(self) -> Any:
        return _as_error


def _as_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """The contract's `{"error": …}`; None for what is unknown, which becomes a plain 500."""
    if isinstance(error, WireError | BadCursor):
        error = exceptions.ParseError(f"{error}. Nothing was changed.")
    elif isinstance(error, Http404):
        error = exceptions.NotFound("There is no such node here.")
    response = drf_exception_handler(error, context)
    if response is not None and isinstance(error, exceptions.APIException):
        response.data = {"error": str(error.detail)}
    return response


class NotHereYet(exceptions.APIException):
    status_code = 409
    default_code = "not_here_yet"
    default_detail = "A node of this edge is not here. Send it first. Nothing was changed."


class Nodes(EngramView):
    def get(self, request: Request) -> HttpResponseBase:
        """The newest nodes, newest first."""
        limit = _integer(request, "limit", STANDARD_NODES, MOST_NODES)
        owner = _owner(request)
        return _streamed(partial(giving.newest_nodes, owner, limit), partial(giving.nodes_by_id, owner))


class RecentNodes(EngramView):
    def get(self, request: Request) -> HttpResponseBase:
        """The newest nodes of one kind."""
        node_type = request.query_params.get("type", "Conversation").replace("\0", "")
        limit = _integer(request, "limit", 20, MOST_RECENT)
        since = _moment(request, "since")
        owner = _owner(request)
        ids = giving.recent_nodes(owner, node_type, limit, since)
        return _streamed(lambda: ids, partial(giving.nodes_by_id, owner))


class Edges(EngramView):
    def get(self, request: Request) -> HttpResponseBase:
        """All edges."""
        owner = _owner(request)
        return _streamed(partial(giving.edges_of, owner), partial(giving.edges_by_id, owner))


class Sync(EngramView):
    def get(self, request: Request) -> HttpResponseBase:
        """A page of what changed since the cursor. Asked again with the page's cursor until a page is empty."""
        cursor = begin(request.query_params.get("since", ""))
        return HttpResponse(giving.changes(_owner(request), cursor), content_type="application/json")


class OneNode(EngramView):
    def put(self, request: Request, node_id: UUID) -> Response:
        """Keep this version of a node unless a newer one is here. Sent again it changes nothing."""
        node = wire.read_node(request.data)
        if node.id != node_id:
            raise exceptions.ParseError(
                "The id of the node is not the one in the address. Nothing was changed."
            )
        try:
            taken = taking.take_node(owner=_owner(request), node=node)
        except taking.SomebodyElses:
            raise Http404 from None
        return Response({"id": str(node_id), "taken": taken})

    def delete(self, request: Request, node_id: UUID) -> Response:
        """Forget a node for good. One that is not here is forgotten too: a late PUT will not bring it."""
        version = _integer(request, "version", 1, LARGEST_INTEGER)
        taking.delete_node(owner=_owner(request), node_id=node_id, version=version)
        return Response(status=204)


class OneEdge(EngramView):
    def put(self, request: Request, edge_id: UUID) -> Response:
        """Keep this version of an edge between two nodes that are here."""
        edge = wire.read_edge(request.data)
        if edge.id != edge_id:
            raise exceptions.ParseError(
                "The id of the edge is not the one in the address. Nothing was changed."
            )
        try:
            taken = taking.take_edge(owner=_owner(request), edge=edge)
        except taking.SomebodyElses:
            raise Http404 from None
        except MemoryNode.DoesNotExist:
            raise NotHereYet from None
        return Response({"id": str(edge_id), "taken": taken})


class StateEvents(EngramView):
    def post(self, request: Request) -> Response:
        """Keep an event of another Neuron, once per id."""
        data = request.data if isinstance(request.data, dict) else {}
        content, event_id = data.get("content"), data.get("id")
        if not isinstance(content, str) or not isinstance(event_id, str) or not 0 < len(event_id) <= 200:
            raise exceptions.ParseError(
                "content and id must be strings, and id not empty. Nothing was changed."
            )
        taking.take_state_event(owner=_owner(request), event_id=event_id, content=content)
        return Response({"id": event_id})


def _owner(request: Request) -> User:
    return cast(User, request.user)


def _streamed(ids: Any, rows: Any) -> StreamingHttpResponse:
    response = StreamingHttpResponse(giving.write_array(ids, rows), content_type="application/json")
    response["Cache-Control"] = "no-store"
    return response


def _integer(request: Request, name: str, standard: int, most: int) -> int:
    raw = request.query_params.get(name, "")
    if not raw:
        return standard
    if not (raw.isascii() and raw.isdecimal() and len(raw) <= 10 and 1 <= int(raw) <= most):
        raise exceptions.ParseError(f"{name} must be a whole number between 1 and {most}.")
    return int(raw)


def _moment(request: Request, name: str) -> datetime | None:
    raw = request.query_params.get(name, "")
    if not raw:
        return None
    try:
        moment = datetime.fromisoformat(raw)
        if timezone.is_naive(moment):
            raise ValueError
        moment.astimezone(timezone.get_default_timezone())
    except (ValueError, OverflowError):
        raise exceptions.ParseError(f"{name} must be ISO 8601 with a time zone.") from None
    return moment


urlpatterns = [
    path("health", health),
    path("api/nodes", Nodes.as_view()),
    path("api/nodes/recent", RecentNodes.as_view()),
    path("api/nodes/<uuid:node_id>", OneNode.as_view()),
    path("api/edges", Edges.as_view()),
    path("api/edges/<uuid:edge_id>", OneEdge.as_view()),
    path("api/sync", Sync.as_view()),
    path("api/neuron/state-events", StateEvents.as_view()),
]
