"""The shapes of the API: what goes in and out of sessions, turns, imports and tokens."""

from typing import Any

from rest_framework import serializers

from conversations.models import ImportedChat, ImportJob, Mode, Session, Turn


class SessionSerializer(serializers.ModelSerializer[Session]):
    """A session as it is read."""

    imprint = serializers.CharField(source="imprint.name", default=None, read_only=True, allow_null=True)
    turns = serializers.IntegerField(source="next_index", read_only=True, help_text="How many turns it has.")

    class Meta:
        model = Session
        fields = (
            "id",
            "title",
            "mode",
            "imprint",
            "source",
            "pinned",
            "temporary",
            "turns",
            "created_at",
            "last_turn_at",
            "forked_from",
            "forked_at",
        )
        read_only_fields = fields


class NewSessionSerializer(serializers.Serializer[Any]):
    """What a session may begin with."""

    title = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    mode = serializers.ChoiceField(choices=Mode.choices, required=False, default=Mode.CHAT)


class SessionChangesSerializer(serializers.Serializer[Any]):
    """What can be changed of a session; what is absent stays."""

    title = serializers.CharField(max_length=200, required=False, allow_blank=True)
    mode = serializers.ChoiceField(choices=Mode.choices, required=False)
    pinned = serializers.BooleanField(required=False)


class RecalledSerializer(serializers.Serializer[Any]):
    """Something remembered that an answer drew on."""

    node_id = serializers.UUIDField()
    session_id = serializers.UUIDField(allow_null=True)
    turn_index = serializers.IntegerField(allow_null=True)
    occurred_at = serializers.DateTimeField()
    title = serializers.CharField()
    why = serializers.CharField()


class NoticeSerializer(serializers.Serializer[Any]):
    """A notice shown with a turn."""

    id = serializers.CharField()
    text = serializers.CharField()


class TurnSerializer(serializers.ModelSerializer[Turn]):
    """A turn as it is read. `a` grows while the status is pending or answering."""

    recalled = RecalledSerializer(many=True, read_only=True)
    notices = NoticeSerializer(many=True, read_only=True)

    class Meta:
        model = Turn
        fields = (
            "id",
            "session",
            "turn_index",
            "q",
            "a",
            "status",
            "action",
            "mode",
            "model",
            "client_key",
            "recalled",
            "notices",
            "help_lines",
            "error",
            "created_at",
            "answered_at",
        )
        read_only_fields = fields


class NewTurnSerializer(serializers.Serializer[Any]):
    """A message. The same `client_key` again is the same message, however often it is sent."""

    text = serializers.CharField(trim_whitespace=False, allow_blank=True)
    client_key = serializers.CharField(max_length=64, required=False)


class HelpLineSerializer(serializers.Serializer[Any]):
    """A service that helps."""

    name = serializers.CharField()
    phone = serializers.CharField(allow_blank=True)
    sms = serializers.CharField(allow_blank=True)
    sms_word = serializers.CharField(allow_blank=True)
    url = serializers.CharField(allow_blank=True)
    hours = serializers.CharField(allow_blank=True)


class ResourcesSerializer(serializers.Serializer[Any]):
    """Help lines of a country; an empty country is the fallback."""

    country = serializers.CharField(allow_blank=True)
    emergency = serializers.ListField(child=serializers.CharField())
    lines = HelpLineSerializer(many=True)


class AnswerSerializer(serializers.Serializer[Any]):
    """What became of a message. After a hard bell there is a fixed reply and no turn."""

    action = serializers.ChoiceField(choices=["pass", "soft_bell", "hard_bell"])
    reply = serializers.CharField(
        allow_null=True, help_text="Markdown; null while the answer is still growing."
    )
    turn = TurnSerializer(allow_null=True)
    help_lines = ResourcesSerializer(allow_null=True)


class RecentSerializer(serializers.Serializer[Any]):
    """A remembered exchange."""

    q = serializers.CharField()
    a = serializers.CharField()
    created_at = serializers.DateTimeField()
    session_id = serializers.UUIDField(allow_null=True)
    turn_index = serializers.IntegerField(allow_null=True)


class RecentQuerySerializer(serializers.Serializer[Any]):
    """How many, and after which moment."""

    limit = serializers.IntegerField(min_value=1, max_value=1000, default=20)
    since = serializers.DateTimeField(required=False, default=None, help_text="Exclusive.")


class ImportSerializer(serializers.ModelSerializer[ImportJob]):
    """An import and how far it is."""

    class Meta:
        model = ImportJob
        fields = ("id", "file_name", "size", "done_bytes", "state", "error", "created_at", "finished_at")
        read_only_fields = fields


class NewImportSerializer(serializers.Serializer[Any]):
    """A chat export: conversations.json, or the zip file it came in."""

    upload = serializers.FileField()


class ImportedChatSerializer(serializers.ModelSerializer[ImportedChat]):
    """What became of one chat of an export."""

    class Meta:
        model = ImportedChat
        fields = ("position", "title", "outcome", "reason", "turns_added", "turns_left_out", "session")
        read_only_fields = fields


class TokenSerializer(serializers.Serializer[Any]):
    """A token; its secret part is known to nobody."""

    key = serializers.CharField(source="token_key", help_text="Its first characters.")
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True)


class NewTokenSerializer(serializers.Serializer[Any]):
    """A token in full, shown this once."""

    token = serializers.CharField()
