"""Bells in the admin: a queue, one bell as a form to be filled, and how review goes. Nothing is added or deleted."""

from datetime import datetime, timedelta
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import Case, Count, QuerySet, Value, When
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.decorators import display

from safety import explain, statistics
from safety.examples import sentences
from safety.help_line_admin import HelpLineAdmin
from safety.models import BellEvent
from safety.services import note_view, review_bell
from safety.stewards import is_steward

LONGEST_NOTE = 10_000
__all__ = ["BellAdmin", "HelpLineAdmin", "Question", "dashboard"]


class Question(admin.SimpleListFilter):
    """The filters, as what a steward wants to know."""

    title = "What do you want to see?"
    parameter_name = "show"

    QUESTIONS = (
        ("today", "What rang in the last day?"),
        ("late", "What has waited for more than a day?"),
        ("seen", "What was acknowledged and is not closed?"),
        ("false", "What was a false positive?"),
        ("resolved", "What was resolved?"),
        ("withheld", "Which replies were withheld?"),
        ("again", "Who rang more than once this week?"),
        ("all", "Everything"),
    )

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return self.QUESTIONS

    def choices(self, changelist: Any) -> Any:
        for number, choice in enumerate(super().choices(changelist)):
            yield {**choice, "display": "What waits for review?"} if number == 0 else choice

    def queryset(self, request: HttpRequest, queryset: "QuerySet[BellEvent]") -> "QuerySet[BellEvent]":
        day_ago = _days_ago(1)
        match self.value():
            case "today":
                return queryset.filter(created_at__gte=day_ago)
            case "late":
                return queryset.filter(state=BellEvent.State.OPEN, created_at__lt=day_ago)
            case "seen":
                return queryset.filter(state=BellEvent.State.ACKNOWLEDGED)
            case "false":
                return queryset.filter(state=BellEvent.State.FALSE_POSITIVE)
            case "resolved":
                return queryset.filter(state=BellEvent.State.RESOLVED)
            case "withheld":
                return queryset.filter(level=BellEvent.Level.WITHHELD)
            case "again":
                return queryset.filter(created_at__gte=_days_ago(7), owner__in=_rang_again())
            case "all":
                return queryset
        return queryset.filter(state=BellEvent.State.OPEN)


def _days_ago(days: int) -> datetime:
    return timezone.now() - timedelta(days=days)


def _rang_again() -> Any:
    rang = BellEvent.objects.filter(created_at__gte=_days_ago(7)).exclude(owner=None)
    return rang.order_by().values("owner").annotate(times=Count("pk")).filter(times__gt=1).values("owner")


@admin.register(BellEvent)
class BellAdmin(ModelAdmin):  # type: ignore[misc]
    """The review queue. The list shows no words of a message."""

    list_display = ("rang", "level_in_words", "why", "waited", "where_it_stands")
    list_display_links = ("rang",)
    list_filter = (Question, "level", "reason")
    list_per_page = 50
    list_filter_submit = False
    actions = None
    search_fields = ()
    change_list_template = "admin/safety/bellevent/queue.html"

    # --- Rights: a steward looks and reviews; the record itself is nobody's to change ---------------------

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_steward(request.user)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_steward(request.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    # --- The queue -----------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> "QuerySet[BellEvent]":
        return BellEvent.objects.all()

    def get_ordering(self, request: HttpRequest) -> Any:
        waiting_first = Case(When(state=BellEvent.State.OPEN, then=Value(0)), default=Value(1))
        hard_first = Case(When(level=BellEvent.Level.HARD, then=Value(0)), default=Value(1))
        return (waiting_first, hard_first, "created_at", "id")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        context = {**(extra_context or {}), "queue": in_words(statistics.queue()), "title": "Bells"}
        return cast(HttpResponse, super().changelist_view(request, context))

    @display(description="Rang", ordering="created_at")  # type: ignore[untyped-decorator]
    def rang(self, bell: BellEvent) -> str:
        return f"{timezone.localtime(bell.created_at):%-d %b %Y, %H:%M}"

    @display(  # type: ignore[untyped-decorator]
        description="How serious", label={"hard": "danger", "soft": "warning", "withheld": "info"}
    )
    def level_in_words(self, bell: BellEvent) -> tuple[str, str]:
        return bell.level, bell.get_level_display()

    @display(description="Why", ordering="reason")  # type: ignore[untyped-decorator]
    def why(self, bell: BellEvent) -> str:
        return bell.reason

    @display(description="Waiting")  # type: ignore[untyped-decorator]
    def waited(self, bell: BellEvent) -> str:
        return (
            explain.waiting(timezone.now() - bell.created_at)
            if bell.state == BellEvent.State.OPEN
            else "reviewed"
        )

    @display(  # type: ignore[untyped-decorator]
        description="State", label={"open": "danger", "acknowledged": "warning", "resolved": "success"}
    )
    def where_it_stands(self, bell: BellEvent) -> tuple[str, str]:
        return bell.state, bell.get_state_display()

    # --- One bell ------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("weeks/", self.admin_site.admin_view(self.weeks_view), name="safety_bellevent_weeks"),
            path(
                "<uuid:bell_id>/review/",
                self.admin_site.admin_view(self.review_view),
                name="safety_bellevent_review",
            ),
        ]
        return own + cast(list[URLPattern], super().get_urls())

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The bell, whole. That it was opened is kept."""
        steward = _steward_or_404(request)
        bell = self.get_object(request, object_id)
        if bell is None:
            raise Http404
        note_view(bell=bell, steward=steward)
        return self._page(
            request,
            "admin/safety/bellevent/bell.html",
            title=f"{bell.get_level_display().capitalize()}, {timezone.localtime(bell.created_at):%-d %B %Y}",
            bell=bell,
            seriousness=explain.seriousness(bell.level, bell.ideation_level),
            reasons=explain.reasons(bell.signals, sentences()),
            words=explain.marked(bell.summary, bell.signals),
            reviews=bell.reviews.select_related("steward"),
            views=bell.views.select_related("steward"),
            waited=explain.waiting(timezone.now() - bell.created_at),
            following=BellEvent.objects.unreviewed().queue_order().exclude(pk=bell.pk).first(),
        )

    def review_view(self, request: HttpRequest, bell_id: Any) -> HttpResponse:
        """One click: acknowledge, resolve, or false positive, with the note beside it."""
        steward = _steward_or_404(request)
        if request.method != "POST":
            return HttpResponse(status=405)
        bell = get_object_or_404(BellEvent, pk=bell_id)
        try:
            note = request.POST.get("note", "").replace("\0", "")[:LONGEST_NOTE]
            review = review_bell(bell=bell, steward=steward, state=request.POST.get("state", ""), note=note)
        except ValueError:
            messages.error(request, "Nothing was decided: choose one of the three buttons.")
        else:
            messages.success(request, f"Kept: {review.get_state_display()}.")
        return HttpResponseRedirect(reverse("admin:safety_bellevent_change", args=[bell.pk]))

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """The history of a bell stands on its own page."""
        _steward_or_404(request)
        return HttpResponseRedirect(reverse("admin:safety_bellevent_change", args=[object_id]))

    # --- How review goes -----------------------------------------------------------------------------------

    def weeks_view(self, request: HttpRequest) -> HttpResponse:
        """Counts by week, precision by verdicts, median time to review."""
        _steward_or_404(request)
        weeks = statistics.by_week()
        taken = statistics.median_time_to_review()
        return self._page(
            request,
            "admin/safety/bellevent/weeks.html",
            title="How review goes",
            weeks=weeks,
            picture=statistics.picture(weeks),
            verdicts=statistics.verdicts(),
            median=explain.waiting(taken) if taken is not None else None,
            queue=in_words(statistics.queue()),
            referrals=statistics.referrals(),
        )

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        everywhere = self.admin_site.each_context(request)
        return TemplateResponse(request, template, {**everywhere, "opts": self.opts, **context})


def in_words(queue: statistics.Queue) -> dict[str, Any]:
    """The queue as pages say it."""
    longest = explain.waiting(queue.longest) if queue.longest is not None else ""
    return {"waiting": queue.waiting, "hard": queue.hard, "longest": longest}


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The admin's first page begins with the queue, for stewards."""
    if is_steward(request.user):
        context["queue"] = in_words(statistics.queue())
    return context


def _steward_or_404(request: HttpRequest) -> User:
    if not is_steward(request.user):
        raise Http404
    return cast(User, request.user)
