"""`manage.py doctor`: whether everything is well; exit status 1 where something is not."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from neuron_site.doctor import Finding, all_well, examine


class Command(BaseCommand):
    help = "Look at every part of Neuron and say what is not well and what mends it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        # The pool would wait ten seconds for every look at a database that is away, and hide the reason.
        settings.DATABASES["default"].get("OPTIONS", {}).pop("pool", None)
        findings = examine()
        ok = all_well(findings)
        if options["json"]:
            self.stdout.write(json.dumps({"ok": ok, "findings": [asdict(one) for one in findings]}, indent=2))
        else:
            for one in findings:
                mend = f". Mend: {one.mend}" if one.mend else ""
                self.stdout.write(f"{_verdict(one)}  {one.name}: {one.detail}{mend}")
        if not ok:
            sys.exit(1)


def _verdict(finding: Finding) -> str:
    if finding.ok:
        return "well    "
    return "NOT WELL" if finding.serious else "look    "
