"""What the person asked to have kept: read, add to, correct, pin, forget."""

from uuid import UUID

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from conversations import facts, keeping
from conversations.api.base import View, country_of, person, turn_or_404
from conversations.kept_serializers import FactChangesSerializer, FactSerializer, NewFactSerializer
from memory.knowledge import pin_fact
from memory.models import MemoryNode
from neuron_site.problems import Problem


class Facts(View):
    queryset = MemoryNode.objects.none()
    serializer_class = FactSerializer
    ordering = ("-occurred_at", "-id")

    @extend_schema(responses={200: FactSerializer(many=True)})
    def get(self, request: Request) -> Response:
        """What is kept, the newest first."""
        return self.listed(MemoryNode.objects.for_owner(person(request)).knowledge(), FactSerializer)

    @extend_schema(request=NewFactSerializer, responses={201: FactSerializer})
    def post(self, request: Request) -> Response:
        """Keep what was said in a turn (`turn_id`), or these words (`content`), which are screened like a message."""
        given = NewFactSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        turn_id, content = given.validated_data.get("turn_id"), given.validated_data.get("content", "")
        try:
            if turn_id:
                node = keeping.keep_turn(turn=turn_or_404(request, turn_id))
            else:
                node = facts.keep(owner=person(request), words=content, country=country_of(request))
        except (keeping.NothingToKeep, facts.NotKept) as error:
            raise _as_problem(error) from error
        if given.validated_data["pinned"]:
            node = pin_fact(node=node, pinned=True)
        return Response(
            FactSerializer(node).data, status=201, headers={"Location": f"/api/v1/knowledge/{node.pk}"}
        )


class OneFact(View):
    queryset = MemoryNode.objects.none()
    serializer_class = FactSerializer

    @extend_schema(responses={200: FactSerializer})
    def get(self, request: Request, node_id: UUID) -> Response:
        """One fact."""
        return Response(FactSerializer(_fact_or_404(request, node_id)).data)

    @extend_schema(request=FactChangesSerializer, responses={200: FactSerializer})
    def patch(self, request: Request, node_id: UUID) -> Response:
        """Correct it (the words are screened like a message), pin it or unpin it."""
        node = _fact_or_404(request, node_id)
        given = FactChangesSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        changes = given.validated_data
        if "content" in changes:
            try:
                node = facts.correct(
                    owner=person(request), node=node, words=changes["content"], country=country_of(request)
                )
            except (keeping.NothingToKeep, facts.NotKept) as error:
                raise _as_problem(error) from error
        if "pinned" in changes:
            node = pin_fact(node=node, pinned=changes["pinned"])
        return Response(FactSerializer(node).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, node_id: UUID) -> Response:
        """Forget it for good. The turn it was said in stays."""
        keeping.forget(owner=person(request), node=_fact_or_404(request, node_id))
        return Response(status=204)


def _fact_or_404(request: Request, node_id: UUID) -> MemoryNode:
    return get_object_or_404(MemoryNode.objects.for_owner(person(request)).knowledge(), pk=node_id)


def _as_problem(error: Exception) -> Problem:
    if isinstance(error, facts.NotKept):
        if error.received.refused:
            return Problem(status_code=503, code="safe_mode", detail=error.received.reply or "")
        return Problem(status_code=422, code="hard_bell", detail=error.received.reply or "")
    return Problem(status_code=422, code="nothing_to_keep", detail=str(error))
