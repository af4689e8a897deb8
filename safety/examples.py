"""The sentences that the classifier was trained on, by id: what a verdict's nearest examples say. All are our own."""

import hashlib
import json
import logging
from functools import lru_cache

from safety.lexicon import DATA

logger = logging.getLogger(__name__)


def example_id(text: str) -> str:
    """The id under which a sentence stands in the weights file."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@lru_cache(maxsize=1)
def sentences() -> dict[str, str]:
    """Every example by its id. A file that cannot be read costs explanations, nothing else."""
    found: dict[str, str] = {}
    for path in sorted((DATA / "examples").glob("*.jsonl")):
        try:
            rows = [
                json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
            ]
            found |= {example_id(str(row["text"])): str(row["text"]) for row in rows}
        except (OSError, ValueError, KeyError, TypeError):
            logger.warning("the examples of %s cannot be read", path.name)
    return found
