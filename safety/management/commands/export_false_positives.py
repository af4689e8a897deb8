"""`manage.py export_false_positives [FILE]`: bells that stewards found unjustified, as examples for training."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from safety.models import SUMMARY_LENGTH, BellEvent


class Command(BaseCommand):
    help = (
        "Write confirmed false positives as JSON lines. They hold up to 80 characters of what people wrote: "
        "read and reword them before they become examples."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="standard output where none is named")

    def handle(self, *args: Any, **options: Any) -> None:
        bells = BellEvent.objects.filter(state=BellEvent.State.FALSE_POSITIVE).exclude(summary="")
        lines = [
            json.dumps(_example(bell), ensure_ascii=False) for bell in bells.order_by("created_at", "id")
        ]
        text = "".join(f"{line}\n" for line in lines)
        path: Path | None = options["file"]
        if path is None:
            self.stdout.write(text, ending="")
            return
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
        print(f"{len(lines)} examples are in {path}.", file=sys.stderr)


def _example(bell: BellEvent) -> dict[str, Any]:
    """No person, no session: only the words, what rang, and whether they were cut."""
    return {
        "text": bell.summary,
        "kind": "harmless",
        "register": "review",
        "rang": bell.level,
        "reason": bell.reason,
        "cut": len(bell.summary) == SUMMARY_LENGTH,
    }
