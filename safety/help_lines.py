"""The help lines that people are shown: the data file's, with what staff have edited.

They are there without a database: what was last read of the edits stands, and before that the file.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.db import DatabaseError, InterfaceError

from safety.models import EditedHelpLine
from safety.resources import HelpLine, Resources, defaults

logger = logging.getLogger(__name__)

# Another process sees an edit after so many seconds at the most.
FRESH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Known:
    resources: Mapping[str, Resources]
    read_at: float


class _Memory:
    known: _Known | None = None


_memory = _Memory()


def all_resources(*, ask_database: bool = True) -> Mapping[str, Resources]:
    """By country code; the fallback under "". With `ask_database=False` what is known already, without a wait."""
    known = _memory.known
    if known is not None and time.monotonic() - known.read_at < FRESH_SECONDS:
        return known.resources
    standing = known.resources if known is not None else defaults()
    if not ask_database:
        return standing
    try:
        edited = list(EditedHelpLine.objects.exclude(edited_at=None).order_by("id"))
    except (DatabaseError, InterfaceError):
        logger.warning("edited help lines could not be read; what was known of them stands")
        found = standing
    else:
        found = laid_over(defaults(), edited)
    _memory.known = _Known(found, time.monotonic())
    return found


def for_country(code: str, *, ask_database: bool = True) -> Resources:
    """The help lines of a country, or the fallback where we know none."""
    known = all_resources(ask_database=ask_database)
    return known.get(code.upper(), known[""])


def forget() -> None:
    """Read the edits again at the next use."""
    _memory.known = None


def laid_over(resources: Mapping[str, Resources], edited: Iterable[EditedHelpLine]) -> dict[str, Resources]:
    """The file's lines with the edited ones in their places and new ones after them; none is left without a line."""
    rows: dict[str, dict[str, EditedHelpLine]] = {}
    for row in edited:
        rows.setdefault(row.country, {})[row.name] = row
    found = dict(resources)
    for code, mine in rows.items():
        if code not in found or not code:
            continue
        standing = found[code].lines
        named = {line.name: line for line in standing} | {name: as_line(row) for name, row in mine.items()}
        kept = tuple(line for name, line in named.items() if name not in mine or mine[name].shown)
        found[code] = replace(found[code], lines=kept or standing)
    return found


def as_line(row: EditedHelpLine) -> HelpLine:
    return HelpLine(
        name=row.name,
        phone=row.phone,
        sms=row.sms,
        sms_word=row.sms_word,
        url=row.url,
        hours=row.hours,
        source=row.source,
        verified_on=row.verified_on,
    )
