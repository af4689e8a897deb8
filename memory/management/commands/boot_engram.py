"""`manage.py boot_engram`: load the remote engram into one that is empty here. `up` does it at each start."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from memory.engram.boot import boot_engram


class Command(BaseCommand):
    help = "Load the remote engram where the local one is all but empty. Exits with 1 where it is degraded."

    def handle(self, *args: Any, **options: Any) -> None:
        booted = boot_engram()
        self.stdout.write(f"Engram: {booted.sentence}")
        if booted.degraded:
            sys.exit(1)
