"""A person's remembered nodes over the API: read only, bells aside."""

from typing import Any, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from memory.models import MemoryNode
from memory.querysets import MemoryNodeQuerySet


class NodeSerializer(serializers.ModelSerializer[MemoryNode]):
    """A remembered thing."""

    payload = serializers.DictField(read_only=True)
    tags = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = MemoryNode
        fields = (
            "id",
            "node_type",
            "tier",
            "label",
            "content",
            "payload",
            "tags",
            "salience",
            "importance",
            "confidence",
            "session_id",
            "turn_index",
            "occurred_at",
            "created_at",
            "updated_at",
            "version",
        )
        read_only_fields = fields


class Nodes(GenericAPIView[MemoryNode]):
    queryset = MemoryNode.objects.none()
    serializer_class = NodeSerializer
    ordering = ("-occurred_at", "-id")

    @extend_schema(
        parameters=[OpenApiParameter("type", str, description="Only this node_type, such as Conversation.")],
        responses={200: NodeSerializer(many=True)},
    )
    def get(self, request: Request) -> Response:
        """What is remembered, by when it happened, newest first."""
        nodes = _nodes_of(request)
        node_type = request.query_params.get("type")
        if node_type:
            nodes = nodes.of_type(node_type) if "\0" not in node_type else nodes.none()
        page = self.paginate_queryset(nodes)
        return self.get_paginated_response(NodeSerializer(page or [], many=True).data)


class OneNode(GenericAPIView[MemoryNode]):
    queryset = MemoryNode.objects.none()
    serializer_class = NodeSerializer

    @extend_schema(responses={200: NodeSerializer})
    def get(self, request: Request, node_id: UUID) -> Response:
        """One remembered thing."""
        return Response(NodeSerializer(get_object_or_404(_nodes_of(request), pk=node_id)).data)


def _nodes_of(request: Request) -> MemoryNodeQuerySet:
    # What rang is kept for review, and shown to stewards as bells.
    owned: Any = MemoryNode.objects.for_owner(cast(User, request.user))
    return cast(MemoryNodeQuerySet, owned.exclude(node_type=MemoryNode.NodeType.BELL_EVENT))


urlpatterns = [
    path("nodes", Nodes.as_view()),
    path("nodes/<uuid:node_id>", OneNode.as_view()),
]
