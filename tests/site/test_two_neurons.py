"""Two real Neurons, each started by its own command, one as the engram of the other."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.memory.engram.protocol import a_node
from tests.site.conftest import own_folder
from tests.stack import wait_for
from tests.two_neurons import Neuron, differences, live

pytestmark = [
    pytest.mark.processes,
    # They take minutes on two cores; benchmarks/two_neurons.py does the same at length.
    pytest.mark.skipif(
        not os.environ.get("NEURON_TEST_LONG"), reason="NEURON_TEST_LONG=1 tries two whole Neurons"
    ),
]


@pytest.fixture(scope="module")
def two() -> Iterator[tuple[Neuron, Neuron]]:
    with contextlib.ExitStack() as held:
        second = Neuron(held.enter_context(own_folder()))
        held.callback(second.stop)
        first = Neuron(held.enter_context(own_folder()), engram=second)
        held.callback(first.stop)
        yield first, second


def test_a_life_in_one_is_in_the_other_though_that_was_killed_meanwhile(two: tuple[Neuron, Neuron]) -> None:
    first, second = two
    lived = live(first, second, turns=60, away_s=10)
    assert len(lived.turns) + len(lived.while_away) == 60
    assert lived.while_away
    nodes = second.nodes()
    # One session of three is deleted, and three of the newest are forgotten.
    turns = [node for node in nodes.values() if node["node_type"] == "Conversation"]
    assert len(turns) == 60 - 20 - 3
    assert any(node["version"] > 1 for node in turns)
    assert sum(node["node_type"] == "History" for node in nodes.values()) == 1
    assert second.edges()


def test_what_another_client_writes_there_comes_here_and_goes_again(two: tuple[Neuron, Neuron]) -> None:
    first, second = two
    node = a_node(q="Where do the herons nest?", a="On the island.")
    second.http.put(f"/api/nodes/{node['id']}", json=node).raise_for_status()
    assert first.here.manage("sync_engram").returncode == 0
    assert first.nodes()[node["id"]] == second.nodes()[node["id"]]
    # Found as soon as it is screened and indexed, and without a link to a session that is not here.
    found = wait_for(lambda: _found(first, node["id"]), seconds=60, what="the node from the other")
    assert isinstance(found, dict)
    assert found["link"] == ""
    second.http.delete(f"/api/nodes/{node['id']}").raise_for_status()
    assert first.here.manage("sync_engram").returncode == 0
    assert node["id"] not in first.nodes()
    assert not differences(first, second)


def _found(neuron: Neuron, node_id: str) -> dict[str, Any] | None:
    answer = neuron.http.get("/api/v1/memory/search", params={"q": "Where do the herons nest?", "limit": 20})
    answer.raise_for_status()
    return next((hit for hit in answer.json()["hits"] if hit["node_id"] == node_id), None)
