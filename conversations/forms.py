"""What people send in on the pages."""

import zoneinfo
from datetime import date
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator

from conversations.letters.models import LetterPreference
from conversations.models import Mode, Profile
from conversations.receiving import LONGEST_KEY, LONGEST_MESSAGE
from memory.models import MemoryNode
from safety.resources import defaults


def time_zones() -> list[tuple[str, Any]]:
    """Choices grouped by region."""
    regions: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(zoneinfo.available_timezones()):
        region, _, place = name.partition("/")
        if place and region not in ("Etc", "SystemV", "posix", "right"):
            regions.setdefault(region, []).append((name, place.replace("_", " ").replace("/", ", ")))
    return [("UTC", "UTC"), *regions.items()]


def countries() -> list[tuple[str, str]]:
    """Those we know help lines of."""
    return sorted(((code, one.country_name) for code, one in defaults().items() if code), key=lambda c: c[1])


class MessageField(forms.Field):
    """Text as it was typed. Not a CharField: that strips, and refuses NUL instead of letting it be replaced."""

    widget = forms.Textarea

    def to_python(self, value: str | None) -> str:
        # Browsers send every line break of a text area as CRLF; what was typed is LF.
        return (value or "").replace("\r\n", "\n")

    def validate(self, value: str) -> None:
        if not value.strip():
            raise forms.ValidationError("There is nothing to send yet.")
        if len(value) > LONGEST_MESSAGE:
            raise forms.ValidationError(
                f"This is longer than {LONGEST_MESSAGE:,} characters. Send it in parts."
            )


class MessageForm(forms.Form):
    """One message, and where and how it is to be answered."""

    text = MessageField()
    client_key = forms.CharField(
        max_length=LONGEST_KEY,
        error_messages={"required": "This page is incomplete. Reload it, your words are kept."},
    )
    tools = forms.BooleanField(required=False)
    windowed = forms.BooleanField(required=False)

    @property
    def mode(self) -> str:
        return Mode.AGENTIC if self.cleaned_data["tools"] else Mode.CHAT

    @property
    def in_words(self) -> str:
        """The first error, as a sentence."""
        return str(next(iter(self.errors.values()))[0])


class TitleForm(forms.Form):
    title = forms.CharField(max_length=200, required=False)


class ThemeNameForm(forms.Form):
    name = forms.CharField(
        max_length=80, required=False, label="Call it", help_text="Empty: as it was found."
    )


class MergeThemesForm(forms.Form):
    into = forms.UUIDField()


class SearchForm(forms.Form):
    """How a search is limited; the query itself is taken as it is, whatever it holds."""

    by = forms.ChoiceField(
        choices=[("both", "Words and meaning"), ("words", "Words"), ("meaning", "Meaning")], required=False
    )
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)
    type = forms.ChoiceField(
        choices=[
            ("", "everything"),
            (MemoryNode.NodeType.CONVERSATION, "what was said"),
            (MemoryNode.NodeType.KNOWLEDGE, "what I asked to have kept"),
        ],
        required=False,
    )
    session = forms.UUIDField(required=False)

    def clean_by(self) -> str:
        return self.cleaned_data["by"] or "both"

    def clean_until(self) -> date | None:
        until: date | None = self.cleaned_data["until"]
        if until == date.max:
            raise forms.ValidationError("That day is too far off.")
        return until


class ImportForm(forms.Form):
    upload = forms.FileField(label="The export, as .json or .zip", allow_empty_file=False)


class SnapshotForm(forms.Form):
    snapshot = forms.FileField(
        label="Bring a memory back",
        help_text="A file from here or from another Neuron. What is newer here stays as it is.",
        allow_empty_file=False,
    )


if TYPE_CHECKING:
    ProfileModelForm = forms.ModelForm[Profile]
    LetterModelForm = forms.ModelForm[LetterPreference]
else:
    ProfileModelForm = LetterModelForm = forms.ModelForm  # generic to the type checker only


class ProfileForm(ProfileModelForm):
    time_zone = forms.ChoiceField(choices=time_zones, help_text="Dates and times are shown in it.")
    country = forms.ChoiceField(required=False, help_text="Decides which help lines you are shown.")

    class Meta:
        model = Profile
        fields = ["time_zone", "country", "imprint", "is_minor"]
        labels = {"imprint": "Who answers", "is_minor": "I am under 18"}
        help_texts = {"is_minor": "You are reminded of breaks more plainly then."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["imprint"].empty_label = "The usual one"  # type: ignore[attr-defined]
        if self.instance.is_minor:
            # Said once, it stands: only whoever runs this Neuron takes it back.
            del self.fields["is_minor"]
        self.fields["country"].choices = [("", "Not said"), *countries()]  # type: ignore[attr-defined]


class LetterForm(LetterModelForm):
    class Meta:
        model = LetterPreference
        fields = ["rhythm", "weekday", "day", "hour", "address", "with_quotes"]
        labels = {
            "rhythm": "Write to me",
            "weekday": "On, every week",
            "day": "On this day, every month",
            "hour": "At this hour",
            "address": "Address",
            "with_quotes": "With sentences I said, in the mail itself",
        }
        help_texts = {
            "day": "1 to 28",
            "hour": "0 to 23, in your own time",
            "address": "Empty: letters are kept here to be read.",
        }


class OwnerForm(forms.Form):
    """The first owner."""

    username = forms.CharField(
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        label="Your name here",
        widget=forms.TextInput(attrs={"autocomplete": "username"}),
    )
    password = forms.CharField(
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 10 characters. A few words in a row are easy to keep.",
    )

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        validate_password(password)
        return password
