"""`manage.py evaluate_safety FILE… [--json]`: measure the crisis screen on labelled messages, disguises, dialogues."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from memory.embedding import embed_packaged
from safety import quality, seal
from safety.evaluation import EvaluationError, evaluate, read_files
from safety.lexicon import DATA
from safety.screening import detector_version, screen

HEADLINE = (
    "any_bell_on_hard",
    "hard_on_strict_hard",
    "pass_to_hard",
    "trigger_pass_to_hard",
    "pass_to_any",
    "any_bell_on_soft",
    "evasion_any_bell",
    "dialogues_accepted",
    "dialogues_hard",
)


class Command(BaseCommand):
    help = "Measure the crisis screen: per action, kind and source, each layer alone and all together."
    # Looks at the weights by itself, and needs no database.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--record",
            nargs="?",
            type=Path,
            const=DATA / quality.QUALITY,
            metavar="FILE",
            help="keep the figures for the safety page (needs all three kinds of file)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            loaded = read_files(options["files"])
        except EvaluationError as error:
            raise CommandError(str(error)) from error
        together = evaluate(loaded, partial(screen, embed=embed_packaged))
        if options["record"]:
            try:
                quality.record(
                    together,
                    messages=len(loaded.messages) + len(loaded.evasions),
                    detector_version=detector_version(),
                    day=timezone.localdate(),
                    path=options["record"],
                )
            except ValueError as error:
                raise CommandError(f"Not recorded: {error}.") from error
            if options["record"] == DATA / quality.QUALITY:
                seal.seal()
        together["layers"] = {
            "lists": evaluate(loaded, screen),
            "meaning": evaluate(loaded, partial(screen, embed=embed_packaged, lists=False)),
        }
        if options["json"]:
            values = {name: together[name]["value"] for name in HEADLINE}
            self.stdout.write(json.dumps({**together, **values, "intervals": _headline(together)}))
            return
        self.stdout.write(
            f"{len(loaded.messages)} messages, {len(loaded.evasions)} disguised, {len(loaded.dialogues)} dialogues"
        )
        for title, figures in (("all together", together), *together["layers"].items()):
            self._print(title, figures)
        for key in ("by_source", "by_kind"):
            self.stdout.write(f"\n{key.replace('_', ' ')}")
            for name, rows in together[key].items():
                shown = ", ".join(
                    f"{part} {rows[part]['hits']}/{rows[part]['total']}" for part in HEADLINE if part in rows
                )
                self.stdout.write(f"  {name} ({rows['messages']}): {shown}")

    def _print(self, title: str, figures: dict[str, Any]) -> None:
        self.stdout.write(f"\n{title}")
        for name in HEADLINE:
            one = figures[name]
            if one["total"]:
                low, high = one["interval"]
                self.stdout.write(
                    f"  {name:24} {one['value']:.3f}  ({one['hits']}/{one['total']}, 95 %: {low:.3f} to {high:.3f})"
                )
        self.stdout.write(f"  expected precision at 0.5 %: {figures['precision_at_half_percent']}")
        self.stdout.write(f"  latency in ms: {figures['latency_ms']}")


def _headline(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: figures[name] for name in HEADLINE}
