"""Writes of help lines: laying out the data file's for the admin, editing, verifying."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from safety import help_lines
from safety.models import EditedHelpLine
from safety.resources import defaults

_LINE_FIELDS = ("phone", "sms", "sms_word", "url", "hours", "source", "verified_on")


def lay_out_help_lines() -> None:
    """A row for every line of the data file, for the admin to show; a row that nobody edited follows the file."""
    standing = {(row.country, row.name): row for row in EditedHelpLine.objects.all()}
    of_file = {
        (one.country, line.name): {name: getattr(line, name) for name in _LINE_FIELDS}
        for one in defaults().values()
        if one.country
        for line in one.lines
    }
    with transaction.atomic():
        new = [
            EditedHelpLine(country=country, name=name, **values)
            for (country, name), values in of_file.items()
            if (country, name) not in standing
        ]
        EditedHelpLine.objects.bulk_create(new, ignore_conflicts=True)
        for key, row in standing.items():
            if row.edited_at is not None:
                continue
            if key not in of_file:
                row.delete()
            elif any(getattr(row, name) != value for name, value in of_file[key].items()):
                EditedHelpLine.objects.filter(pk=row.pk).update(**of_file[key])


def edit_help_line(*, line: EditedHelpLine, editor: AbstractBaseUser) -> EditedHelpLine:
    """Keep an edited line, with who edited it; it is shown from now on."""
    line.edited_by_id = editor.pk
    line.edited_at = timezone.now()
    line.save()
    help_lines.forget()
    return line


def verify_help_line(*, line: EditedHelpLine, editor: AbstractBaseUser) -> EditedHelpLine:
    """Somebody opened the provider's page today and found the line right."""
    line.verified_on = timezone.localdate()
    return edit_help_line(line=line, editor=editor)
