"""Help lines in the admin: every line there is, edited in place, and marked as verified with one click."""

import re
from datetime import date
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.decorators import display

from safety.help_line_services import edit_help_line, lay_out_help_lines, verify_help_line
from safety.help_lines import as_line
from safety.models import EditedHelpLine
from safety.resources import STALE_AFTER, defaults

_NUMBER = re.compile(r"^[+*#]?[\d][\d ()/.*#-]*$|^[+*#][\d]+$")

if TYPE_CHECKING:
    LineModelForm = forms.ModelForm[EditedHelpLine]
else:
    LineModelForm = forms.ModelForm  # generic to the type checker only


class LineForm(LineModelForm):
    """A line that can be dialled, sent to or opened."""

    class Meta:
        model = EditedHelpLine
        fields = (
            "country",
            "name",
            "phone",
            "sms",
            "sms_word",
            "url",
            "hours",
            "source",
            "verified_on",
            "shown",
        )

    def clean_country(self) -> str:
        code = str(self.cleaned_data["country"]).upper()
        if not code or code not in defaults():
            raise forms.ValidationError("Only countries of the data file can have lines.")
        return code

    def clean_phone(self) -> str:
        return self._number("phone")

    def clean_sms(self) -> str:
        return self._number("sms")

    def _number(self, field: str) -> str:
        number = str(self.cleaned_data[field]).strip()
        if number and not _NUMBER.match(number):
            raise forms.ValidationError("This is not a number that a phone can dial.")
        return number

    def clean_verified_on(self) -> date | None:
        day: date | None = self.cleaned_data["verified_on"]
        if day is not None and day > timezone.localdate():
            raise forms.ValidationError("This day is still to come.")
        return day

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not (given.get("phone") or given.get("sms") or given.get("url")):
            raise forms.ValidationError("Give a number to call, one to text, or an address.")
        return given


@admin.register(EditedHelpLine)
class HelpLineAdmin(ModelAdmin):  # type: ignore[misc]
    """Edited lines are shown at once; the data file's stay behind them."""

    form = LineForm
    list_display = ("name", "country", "reach", "verified", "shown", "edited")
    list_filter = ("country", "shown")
    search_fields = ("name", "country")
    list_per_page = 200
    actions = ("verify_today",)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if self.has_view_permission(request):
            lay_out_help_lines()
        return cast(HttpResponse, super().changelist_view(request, extra_context))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # Its country and name tie a row to the line of the data file that it stands for.
        return ("country", "name") if obj is not None else ()

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "url":
            kwargs["assume_scheme"] = "https"
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # "shown" takes a line out, and it can come back

    def save_model(self, request: HttpRequest, obj: EditedHelpLine, form: Any, change: bool) -> None:
        edit_help_line(line=obj, editor=cast(User, request.user))

    @admin.action(description="I opened the provider's page today and it is right", permissions=["change"])
    def verify_today(self, request: HttpRequest, chosen: "QuerySet[EditedHelpLine]") -> None:
        for line in chosen:
            verify_help_line(line=line, editor=cast(User, request.user))
            self.log_change(request, line, "Verified with the provider.")
        messages.success(request, f"Kept: {len(chosen)} verified today.")

    @display(description="Reached by")  # type: ignore[untyped-decorator]
    def reach(self, row: EditedHelpLine) -> str:
        texts = f"{row.sms_word} to {row.sms}" if row.sms_word else row.sms
        return ", ".join(way for way in (row.phone, texts and f"text {texts}", row.url) if way)

    @display(description="Verified", label={"no": "danger", "old": "warning", "yes": "success"})  # type: ignore[untyped-decorator]
    def verified(self, row: EditedHelpLine) -> tuple[str, str]:
        if row.verified_on is None:
            return "no", "never"
        fresh = as_line(row).is_verified(timezone.localdate())
        return ("yes" if fresh else "old"), f"{row.verified_on:%-d %b %Y}" + (
            "" if fresh else f", over {STALE_AFTER.days} days ago"
        )

    @display(description="Edited")  # type: ignore[untyped-decorator]
    def edited(self, row: EditedHelpLine) -> str:
        return f"{timezone.localtime(row.edited_at):%-d %b %Y}" if row.edited_at else "as in the data file"
