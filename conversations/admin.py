"""Sessions, turns and imports in the admin, to be looked at; imprints, to be written."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline

from conversations.models import Attempt, ImportedChat, ImportJob, Imprint, Profile, Session, Turn


class ReadOnly:
    """Looked at by those with the right to view; changed by nobody here."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Imprint)
class ImprintAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("name", "voice", "is_default")
    search_fields = ("name", "voice")


@admin.register(Profile)
class PersonAdmin(ModelAdmin):  # type: ignore[misc]
    """Whether a person is a minor, which decides how they are reminded of breaks. Nothing else is changed here."""

    list_display = ("owner", "is_minor", "last_active_at", "last_notice_at")
    list_filter = ("is_minor",)
    list_select_related = ("owner",)
    search_fields = ("owner__username",)
    fields = ("owner", "is_minor", "last_active_at", "last_notice_at")
    readonly_fields = ("owner", "last_active_at", "last_notice_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Session)
class SessionAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    list_display = ("id", "owner", "source", "mode", "next_index", "last_turn_at")
    list_filter = ("source", "mode", "temporary")
    list_select_related = ("owner",)
    search_fields = ("owner__username", "id")
    ordering = ("-last_turn_at", "-id")


class AttemptInline(ReadOnly, TabularInline):  # type: ignore[misc]
    model = Attempt
    fields = readonly_fields = ("number", "status", "model", "created_at", "a")
    extra = 0


@admin.register(Turn)
class TurnAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    list_display = ("id", "owner", "turn_index", "status", "action", "model", "error", "created_at")
    list_filter = ("status", "action", "mode", "error")
    list_select_related = ("owner",)
    search_fields = ("owner__username", "id", "session__id")
    ordering = ("-created_at", "-id")
    inlines = (AttemptInline,)


class ImportedChatInline(ReadOnly, TabularInline):  # type: ignore[misc]
    model = ImportedChat
    fields = readonly_fields = ("position", "outcome", "reason", "turns_added", "turns_left_out")
    extra = 0


@admin.register(ImportJob)
class ImportJobAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    list_display = ("id", "owner", "state", "done_bytes", "size", "error", "created_at", "finished_at")
    list_filter = ("state",)
    list_select_related = ("owner",)
    ordering = ("-created_at", "-id")
    inlines = (ImportedChatInline,)
