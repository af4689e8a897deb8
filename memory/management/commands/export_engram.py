"""`manage.py export_engram USER FILE`: a person's engram as one JSON file."""

from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.engram.snapshot import verify, write_snapshot


class Command(BaseCommand):
    help = "Write everything one person's memory holds to a JSON file, and verify it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the person's user name")
        parser.add_argument("file", type=Path, help="the file to write; it must not exist")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = get_user_model().objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"There is nobody named {options['user']!r} here.")
        path: Path = options["file"]
        try:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                path.chmod(0o600)
                file.writelines(write_snapshot(owner))
        except OSError as error:
            raise CommandError(f"{error.strerror}: {path}.") from error
        with path.open("rb") as written:
            summary = verify(written)
        self.stdout.write(f"{summary.nodes} nodes and {summary.edges} edges are in {path}.")
