"""`manage.py evaluate_retrieval FILE`: how well recall finds what answers a question, beside plain baselines."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from memory.evaluation import evaluate


class Command(BaseCommand):
    help = "Measure recall on a file of conversations and questions. The database is left as it was."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--leave-out", action="store_true", help="also measure without each channel")

    def handle(self, *args: Any, **options: Any) -> None:
        # On a machine where Neuron never ran there are no tables yet.
        call_command("migrate", verbosity=0, interactive=False)
        try:
            data = json.loads(options["file"].read_text())
            answer = evaluate(data=data, leave_out=options["leave_out"]).as_json()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{options['file']} could not be evaluated: {error!r}") from error
        if options["json"]:
            self.stdout.write(json.dumps(answer))
            return
        for name, system in answer["systems"].items():
            self.stdout.write(f"\n{name}  {_line(system['latency_ms'], 'ms')}")
            for category, figures in {"overall": system["overall"], **system["categories"]}.items():
                self.stdout.write(f"  {category:14} {_line(figures)}")


def _line(figures: dict[str, float], unit: str = "") -> str:
    return "  ".join(f"{name} {value:.3f}{unit}" for name, value in figures.items() if name != "questions")
