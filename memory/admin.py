"""Remembered nodes and the outbox in the admin. Nodes are looked at; dead mirror jobs can be sent again."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from memory.models import MemoryNode, MirrorJob
from memory.services import retry_dead_jobs


@admin.register(MemoryNode)
class MemoryNodeAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("id", "owner", "node_type", "tier", "label", "occurred_at", "version")
    list_filter = ("node_type", "tier")
    list_select_related = ("owner",)
    search_fields = ("owner__username", "id", "label")
    ordering = ("-occurred_at", "-id")

    def get_queryset(self, request: HttpRequest) -> "QuerySet[MemoryNode]":
        # What rang is shown to stewards as bells, each look kept.
        return MemoryNode.objects.exclude(node_type=MemoryNode.NodeType.BELL_EVENT)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(MirrorJob)
class MirrorJobAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("id", "operation", "subject_id", "state", "tries", "due_at", "last_error")
    list_filter = ("state", "operation")
    ordering = ("-id",)
    actions = ("send_again",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [field.name for field in MirrorJob._meta.fields]

    @admin.action(description="Send dead ones again", permissions=["change"])
    def send_again(self, request: HttpRequest, jobs: "QuerySet[MirrorJob]") -> None:
        number = retry_dead_jobs(job_ids=list(jobs.values_list("pk", flat=True)))
        messages.success(request, f"{number} dead jobs are due again. The others were left as they are.")
