"""`manage.py train_screen`: train the classifier by meaning from safety/data/examples, and write its weights."""

from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand

from memory.embedding import PACKAGED_MODEL, embed_packaged
from safety.lexicon import DATA
from safety.training import prepare, read_examples, train, write


class Command(BaseCommand):
    help = "Train the crisis screen from safety/data/examples/*.jsonl and write weights.json with its hash."
    # The weights may be what is missing.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        examples = read_examples(sorted((DATA / "examples").glob("*.jsonl")))
        for kind, count in sorted(Counter(example.kind for example in examples).items()):
            self.stdout.write(f"{count:5d} {kind}")
        self.stdout.write(f"{len(examples)} examples, embedding them …")
        content = train(prepare(examples, embed_packaged), PACKAGED_MODEL)
        write(content, DATA)
        self.stdout.write(f"Wrote {content['version']}. Measure it: manage.py evaluate_safety FILE…")
