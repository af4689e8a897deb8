"""500 turns in one Neuron while its engram, another Neuron, is killed for 30 s; then how long until they are equal.

`python benchmarks/two_neurons.py [--turns 500] [--away 30]`. Both run by `manage.py up`, with the built-in responder.
"""

import argparse
import contextlib
import tempfile
from pathlib import Path

from common import machine, percentile, without_servers


def main() -> None:
    without_servers()
    from tests.two_neurons import Neuron, live

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--away", type=float, default=30)
    asked = parser.parse_args()
    with contextlib.ExitStack() as held:
        folders = [
            Path(
                held.enter_context(
                    tempfile.TemporaryDirectory(prefix="neuron-bench-", ignore_cleanup_errors=True)
                )
            )
            for _ in range(2)
        ]
        second = Neuron(folders[0])
        held.callback(second.stop)
        first = Neuron(folders[1], engram=second)
        held.callback(first.stop)
        lived = live(first, second, turns=asked.turns, away_s=asked.away)
        nodes = len(second.nodes())
    print(machine())
    for name, times in (("engram there", lived.turns), ("engram killed", lived.while_away)):
        ms = [1000 * seconds for seconds in times]
        print(
            f"{name}: {len(ms)} turns, median {percentile(ms, 0.5):.0f} ms, p95 {percentile(ms, 0.95):.0f} ms"
        )
    print(f"equal {lived.equal_after:.1f} s after the last change: {nodes} nodes")


if __name__ == "__main__":
    main()
