"""`manage.py seal_safety_data`: take the data files of the safety layer as they stand, after a change that is meant."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from safety import directives, lexicon, quality, resources, screening, seal


class Command(BaseCommand):
    help = (
        "Check the lists, texts and help lines of safety/data and seal them, so that Neuron starts with them."
    )
    # It is for when the checks say that the seal is broken.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            lexicon.lexicon()
            screening.thresholds()
            resources.defaults()
            quality.recorded()
            for text in (
                directives.wellbeing_directive,
                directives.safe_mode_refusal,
                directives.withheld_reply,
            ):
                text()
            seal.seal()
        except lexicon.LexiconError as error:
            raise CommandError(f"Not sealed. {error}") from error
        self.stdout.write(
            f"Sealed {len(seal.SEALED)} files. Measure the screen again: manage.py evaluate_safety FILE…"
        )
