"""The shapes of the API of what is kept."""

from typing import Any

from rest_framework import serializers

from memory.knowledge import LONGEST_FACT, PINNED
from memory.models import MemoryNode


class FactSerializer(serializers.ModelSerializer[MemoryNode]):
    """Something the person asked to have kept. `quote` is what they first said; `content` has its dates absolute."""

    quote = serializers.CharField(source="payload.quote", default="", read_only=True)
    pinned = serializers.SerializerMethodField()

    class Meta:
        model = MemoryNode
        fields = (
            "id",
            "content",
            "quote",
            "pinned",
            "session_id",
            "turn_index",
            "occurred_at",
            "created_at",
            "updated_at",
            "version",
        )
        read_only_fields = fields

    def get_pinned(self, node: MemoryNode) -> bool:
        return PINNED in node.tags


class NewFactSerializer(serializers.Serializer[Any]):
    """Words of the person's own, or the turn they said them in."""

    content = serializers.CharField(max_length=LONGEST_FACT, required=False)
    turn_id = serializers.UUIDField(required=False)
    pinned = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("content" in attrs) == ("turn_id" in attrs):
            raise serializers.ValidationError("Either content or turn_id is needed, and only one of them.")
        return attrs


class FactChangesSerializer(serializers.Serializer[Any]):
    """What can be changed; what is absent stays."""

    content = serializers.CharField(max_length=LONGEST_FACT, required=False)
    pinned = serializers.BooleanField(required=False)
