"""The shapes of the search API."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memory.search import MOST_FOUND, By


@extend_schema_field(OpenApiTypes.STR)
class QueryField(serializers.Field):  # type: ignore[type-arg]
    """Text of any kind and length. Not a CharField: that refuses NUL, which here is only nothing to look for."""

    def to_internal_value(self, data: Any) -> str:
        return str(data)

    def to_representation(self, value: str) -> str:
        return value


@extend_schema_field(OpenApiTypes.STR)
class TypeField(QueryField):
    """A node_type; what PostgreSQL cannot hold is no type."""

    def to_internal_value(self, data: Any) -> str:
        if "\x00" in str(data):
            raise serializers.ValidationError("There is no such type.")
        return str(data)[:40]


class SearchQuerySerializer(serializers.Serializer[Any]):
    """What to look for, and where."""

    q = QueryField(default="", help_text="Words, a question; in quotes, exact words.")
    by = serializers.ChoiceField(choices=[one.value for one in By], default=By.BOTH.value)
    since = serializers.DateTimeField(required=False, default=None, help_text="Not before.")
    until = serializers.DateTimeField(required=False, default=None, help_text="Only before.")
    type = TypeField(required=False, default="", help_text="Only this node_type, such as Knowledge.")
    session = serializers.UUIDField(required=False, default=None, help_text="Only in this session.")
    limit = serializers.IntegerField(min_value=1, max_value=MOST_FOUND, default=20)


class FoundSessionSerializer(serializers.Serializer[Any]):
    """A session whose title holds the words."""

    id = serializers.UUIDField()
    title = serializers.CharField()
    last_turn_at = serializers.DateTimeField()


class HitSerializer(serializers.Serializer[Any]):
    """Something found. `marks` are spans [start, end) of `snippet`; `sure` is false for what is only the nearest."""

    node_id = serializers.UUIDField()
    node_type = serializers.CharField()
    role = serializers.CharField()
    speaker = serializers.CharField()
    title = serializers.CharField()
    link = serializers.CharField(help_text="Opens the page at the turn; empty for what stands in no session.")
    session_id = serializers.UUIDField(allow_null=True)
    turn_index = serializers.IntegerField(allow_null=True)
    occurred_at = serializers.DateTimeField()
    snippet = serializers.CharField()
    marks = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    before = serializers.CharField()
    after = serializers.CharField()
    sure = serializers.BooleanField()


class SearchedSerializer(serializers.Serializer[Any]):
    """Sure hits, or only the nearest; a note where nothing could be looked for or the query was shortened."""

    note = serializers.CharField()
    sessions = FoundSessionSerializer(many=True)
    hits = HitSerializer(many=True)
