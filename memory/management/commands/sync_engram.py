"""`manage.py sync_engram`: bring the memory up to date from the remote engram, now."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.engram.sync import sync_engram


class Command(BaseCommand):
    help = "Fetch what changed at the remote engram. Exits with 1 where it could not be fetched."

    def handle(self, *args: Any, **options: Any) -> None:
        synced = sync_engram()
        if synced.error and not synced.is_off:
            raise CommandError(synced.sentence)
        self.stdout.write(synced.sentence)
