"""`manage.py import_engram USER FILE`: bring a snapshot of an engram back."""

from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory.engram.snapshot import BadSnapshot, import_snapshot


class Command(BaseCommand):
    help = "Bring what a snapshot holds into one person's memory: all of it, or nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the person's user name")
        parser.add_argument("file", type=Path, help="a file that export_engram or the page wrote")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = get_user_model().objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"There is nobody named {options['user']!r} here.")
        try:
            with options["file"].open("rb") as file:
                taken = import_snapshot(owner=owner, file=file)
        except OSError as error:
            raise CommandError(f"{error.strerror}: {options['file']}.") from error
        except BadSnapshot as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{taken.nodes} nodes and {taken.edges} edges came in. What was here as new stays.")
