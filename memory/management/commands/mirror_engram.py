"""`manage.py mirror_engram`: what the outbox holds, what is stuck and why; send it, send refused ones again."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from memory.engram import mirror, outbox, status
from memory.engram.owner import engram_owner_id


class Command(BaseCommand):
    help = (
        "Say what waits for the remote engram and what is stuck. With an option, first do something about it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--retry", action="store_true", help="make refused jobs due again")
        parser.add_argument(
            "--everything",
            action="store_true",
            help="queue every node and edge, for a remote that came later",
        )
        parser.add_argument("--send", action="store_true", help="send what is due now, here")

    def handle(self, *args: Any, **options: Any) -> None:
        owner_id = engram_owner_id()
        if owner_id is None:
            raise CommandError(
                "Nobody's memory is mirrored: set ENGRAM_URL, and make the account of ENGRAM_OWNER."
            )
        if options["retry"]:
            self.stdout.write(f"{outbox.retry_all_dead()} refused jobs are due again.")
        if options["everything"]:
            self.stdout.write(f"{outbox.enqueue_everything(owner_id=owner_id)} nodes and edges were queued.")
        if options["send"]:
            number = 0
            while sent := mirror.send_due():
                number += sent
            self.stdout.write(f"{number} were sent.")
        self._tell()

    def _tell(self) -> None:
        counts = status.outbox_counts(timezone.now())
        self.stdout.write(
            f"{counts.waiting} wait, {counts.failed_before} of them failed before; {counts.dead} refused."
        )
        breaker = status.breaker_state()
        self.stdout.write(f"Breaker: {breaker.name if breaker else 'Valkey does not answer'}.")
        for job in status.stuck_jobs():
            self.stdout.write(
                f"{job.pk}  {job.operation} {job.subject_id}  {job.state}, {job.tries} tries: {job.last_error}"
            )
