"""`manage.py import_chats FILE --user NAME`: bring old chats along from the command line, without a worker."""

from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.files import File
from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations import importing
from conversations.models import ImportedChat, ImportJob


class Command(BaseCommand):
    help = "Import a chat export (ChatGPT's conversations.json, or the zip file it came in) for one person."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--user", required=True, help="whose chats these are")

    def handle(self, *args: Any, **options: Any) -> None:
        people = get_user_model().objects.filter(username=options["user"])
        owner = people.first()
        if owner is None:
            raise CommandError(f"There is nobody called {options['user']} here.")
        path: Path = options["file"]
        try:
            with path.open("rb") as content:
                upload: File[bytes] = File(content, name=path.name)
                job = importing.start_import(owner=owner, upload=upload, hint=False)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
        except importing.UploadTooLarge as error:
            raise CommandError("The file is larger than NEURON_IMPORT_MAX_MB allows.") from error
        importing.run(job.pk, own=True)
        self._report(job)

    def _report(self, job: ImportJob) -> None:
        job.refresh_from_db()
        for chat in job.chats.all():
            title = chat.title or "untitled"
            self.stdout.write(
                f"{chat.position}: {chat.get_outcome_display()}, {title}. {chat.reason}".rstrip()
            )
        taken = job.chats.exclude(
            outcome__in=[ImportedChat.Outcome.SKIPPED, ImportedChat.Outcome.FAILED]
        ).count()
        if job.state != ImportJob.State.DONE:
            raise CommandError(job.error)
        self.stdout.write(f"{taken} of {job.chats.count()} chats are here.")
