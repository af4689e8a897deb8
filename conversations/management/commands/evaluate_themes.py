"""`manage.py evaluate_themes FILE`: how well themes without a model find labelled topics and their moves."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.themes.evaluation import Report, evaluate


class Command(BaseCommand):
    help = "Measure themes on a labelled corpus (tests/conversations/data/three_months.json is one). Writes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = evaluate(json.loads(options["file"].read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{options['file']} could not be evaluated: {error!r}") from error
        self.stdout.write(json.dumps(asdict(report)) if options["json"] else _in_words(report))


def _in_words(report: Report) -> str:
    found, moves = ("yes" if right else "no" for right in (report.all_found, report.moves_right))
    lines = [
        f"{report.turns} turns, {len(report.topics)} labelled topics, {report.themes} themes",
        f"V-measure {report.v_measure:.3f} "
        f"(homogeneity {report.homogeneity:.3f}, completeness {report.completeness:.3f})",
        f"every topic found: {found}; every move right: {moves}",
    ]
    for topic in report.topics:
        mark = "" if topic.labelled in ("", topic.found) else f" (labelled {topic.labelled})"
        lines.append(
            f"  {topic.label:12} {topic.turns:4} turns  {topic.found or 'not found'}{mark}: {topic.theme}"
        )
    return "\n".join(lines)
