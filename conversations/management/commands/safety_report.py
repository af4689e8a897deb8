"""`manage.py safety_report YEAR [--json]`: counts and protocol of a year, with nothing that identifies anybody."""

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from conversations import protocol
from safety.protocol import layers, measured
from safety.report import Counts, counts


class Command(BaseCommand):
    help = "Write the yearly report on safety: how often help lines were shown, what rang, and the protocol."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("year", type=int)
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        year: int = options["year"]
        if not 2000 <= year <= timezone.localdate().year:
            raise CommandError(f"There is nothing to report of {year}. Name a year that has begun.")
        found = counts(year)
        if options["json"]:
            self.stdout.write(json.dumps(self._as_object(found), ensure_ascii=False, indent=1))
        else:
            self.stdout.write("\n".join(self._lines(found)))

    def _as_object(self, found: Counts) -> dict[str, Any]:
        quality = measured().quality
        return {
            **asdict(found),
            "referrals": found.referrals,
            "written_on": timezone.localdate().isoformat(),
            "protocol": [asdict(section) for section in protocol.sections()],
            "layers": [asdict(layer) for layer in layers()],
            "quality": {
                "measured_on": quality.measured_on.isoformat(),
                "detector_version": quality.detector_version,
                "figures": {figure.name: figure.value for figure in quality.figures},
            },
        }

    def _lines(self, found: Counts) -> list[str]:
        quality = measured().quality
        lines = [
            f"Safety report of {found.year}",
            f"Written on {timezone.localdate():%-d %B %Y}. Counts only; nothing here is of a person.",
            "",
            "Referrals to help lines that were shown",
            f"  {found.referrals:6d} in all",
            f"  {found.referrals_in_place:6d} in place of an answer, after danger",
            f"  {found.referrals_beside:6d} beside an answer, after a wish to die",
            "",
            "What rang",
            f"  {found.hard_bells:6d} hard bells",
            f"  {found.soft_bells:6d} soft bells",
            f"  {found.withheld_replies:6d} replies of a model that were withheld",
            *(f"  {number:6d} expressed {words}" for words, number in found.ideation.items()),
            "",
            "What people made of it",
            f"  {found.reviewed:6d} bells were looked at and decided on",
            f"  {found.resolved:6d} stand as right",
            f"  {found.false_positives:6d} stand as false positives",
            "",
            "Protocol",
        ]
        for section in protocol.sections():
            lines += ["", section.title, *(f"  {paragraph}" for paragraph in section.paragraphs)]
        lines += ["", "Layers", *(f"  {layer.name}: {layer.sentence}" for layer in layers())]
        lines += ["", f"Measured quality, {quality.measured_on:%-d %B %Y}, {quality.detector_version}"]
        lines += [
            f"  {figure.percent:>7} {figure.words} ({figure.hits} of {figure.total})"
            for figure in quality.figures
        ]
        return lines
