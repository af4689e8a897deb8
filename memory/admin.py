"""Remembered nodes and the outbox in the admin. Nodes are looked at; dead mirror jobs can be sent again."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin

from memory.engram import outbox, status
from memory.engram.background import hint_mirror
from memory.engram.sync import sync_engram
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
    change_list_template = "admin/memory/mirrorjob/list.html"

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

    # --- The operator's page ------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.engram_view)
        return [path("engram/", view, name="memory_mirrorjob_engram"), *super().get_urls()]

    def engram_view(self, request: HttpRequest) -> HttpResponse:
        """Mirror, sync, breaker and events, live; and what an operator can do about them."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            if not self.has_change_permission(request):
                raise PermissionDenied
            messages.success(request, _done(request.POST.get("do", "")))
            return HttpResponseRedirect(reverse("admin:memory_mirrorjob_engram"))
        context = {"title": "The remote engram", "opts": self.opts, "status": status.look()}
        if request.headers.get("HX-Request"):
            return TemplateResponse(request, "admin/memory/mirrorjob/status.html", context)
        everywhere = self.admin_site.each_context(request)
        return TemplateResponse(request, "admin/memory/mirrorjob/engram.html", {**everywhere, **context})


def _done(what: str) -> str:
    """Carry out what the operator asked for, and say what became of it."""
    if what == "retry":
        number = outbox.retry_all_dead()
        hint_mirror()
        return f"{number} refused jobs are due again."
    if what == "send":
        number = outbox.make_all_due()
        hint_mirror()
        return f"{number} waiting jobs are due now."
    if what == "sync":
        synced = sync_engram()
        return synced.sentence
    return "Nothing was done: choose one of the three buttons."
