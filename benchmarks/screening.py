"""How long one message is screened, on one thread: by the lists alone, and with meaning.

`python benchmarks/screening.py [--messages 200] [--characters 300]`. Messages are our own examples, put together and
cut to the length; each is screened once, after a warm-up. A paste of 54,000 characters is screened five times.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Callable

from common import ROOT, machine, percentile

os.environ.setdefault("SECRET_KEY", "benchmark")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")

LONGEST = 54_000


def told() -> list[str]:
    """Every example's text, mixed."""
    files = sorted((ROOT / "safety" / "data" / "examples").glob("*.jsonl"))
    texts = [json.loads(line)["text"] for file in files for line in file.read_text().splitlines()]
    random.Random(7).shuffle(texts)
    return texts


def messages(texts: list[str], characters: int, count: int) -> list[str]:
    made, grown = [], ""
    for text in texts:
        grown += text + " "
        if len(grown) >= characters:
            made.append(grown[:characters])
            grown = ""
    return made[:count]


def milliseconds(screen: Callable[[str], object], texts: list[str]) -> list[float]:
    times = []
    for text in texts:
        begin = time.perf_counter()
        screen(text)
        times.append((time.perf_counter() - begin) * 1000)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--characters", type=int, default=300)
    options = parser.parse_args()

    import django

    django.setup()
    from memory.embedding import embed_packaged
    from safety.screening import screen

    texts = told()
    some = messages(texts, options.characters, options.messages)
    ways: dict[str, Callable[[str], object]] = {
        "lists alone": screen,
        "with meaning": lambda text: screen(text, embed=embed_packaged),
    }
    print(f"screening: {len(some)} messages of {options.characters} characters; {machine()}")
    for name, way in ways.items():
        milliseconds(way, some[:20])
        took = milliseconds(way, some)
        print(f"{name}: p50 {percentile(took, 0.5):.2f} ms, p95 {percentile(took, 0.95):.2f} ms")
        paste = " ".join(texts)[:LONGEST]
        print(
            f"  a paste of {len(paste):,} characters: {percentile(milliseconds(way, [paste] * 5), 0.5):.0f} ms"
        )


if __name__ == "__main__":
    main()
