"""The evaluation command: right values on a small sample of our own, baselines beside it, nothing left behind."""

import io
import json

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from memory.evaluation import figures
from memory.models import MemoryNode
from memory.retrieval.fusion import CHANNELS

pytestmark = pytest.mark.django_db


def sample():
    said = [
        ("s1", "Ada", "I started a beekeeping course at the allotment on Tuesday."),
        ("s1", "Ben", "Brilliant. How many hives do they let you look after?"),
        ("s1", "Ada", "Two for now, and a third in June if the weather holds."),
        ("s1", "Ben", "My train was late again, forty minutes this time."),
        ("s2", "Ben", "We adopted a greyhound from the shelter, her name is Juno."),
        ("s2", "Ada", "Lovely name. Does she get on with the neighbours' cat?"),
        ("s2", "Ben", "They ignore each other, which is the best I could hope for."),
        ("s2", "Ada", "I broke my wrist falling off a ladder, so no swimming until May."),
    ]
    messages = [
        {
            "id": f"m{n}",
            "session": session,
            "at": f"2025-0{1 + n // 4}-03T10:0{n}:00Z",
            "speaker": who,
            "text": text,
        }
        for n, (session, who, text) in enumerate(said)
    ]
    questions = [
        ("How many hives does Ada look after?", "single-hop", ["m2"]),
        ("What is the name of Ben's dog?", "single-hop", ["m4"]),
        ("When did Ada start her course?", "temporal", ["m0"]),
        ("Why can Ada not swim?", "open-domain", ["m7"]),
        ("What did Ada and Ben each begin or adopt?", "multi-hop", ["m0", "m4"]),
        ("What is the name of Ada's parrot?", "adversarial", ["m5"]),
        ("Which message is gone?", "single-hop", ["nowhere"]),
    ]
    return {
        "conversations": [
            {
                "id": "c1",
                "messages": messages,
                "questions": [
                    {"id": f"q{n}", "text": text, "category": category, "evidence": evidence}
                    for n, (text, category, evidence) in enumerate(questions)
                ],
            }
        ]
    }


def run(tmp_path, data, *options):
    file = tmp_path / "sample.json"
    file.write_text(json.dumps(data))
    out = io.StringIO()
    call_command("evaluate_retrieval", str(file), *options, stdout=out)
    return out.getvalue()


def test_the_figures_are_right_for_a_ranking_worked_out_by_hand():
    found = ["a", "x", "b", "y", "z", "w", "v", "u", "t", "s", "c"]
    got = figures(found, ["a", "b", "c", "d"])
    assert got["recall@5"] == 0.5
    assert got["recall@10"] == 0.5
    assert got["recall@20"] == 0.75
    assert (got["any@10"], got["all@10"]) == (1.0, 0.0)
    assert got["P@5"] == 0.4
    assert got["MRR"] == 1.0
    # (1 + 1/2) / (1 + 1/log2 3 + 1/2 + 1/log2 5)
    assert got["NDCG@10"] == pytest.approx(1.5 / 2.5616, abs=1e-4)


def test_one_json_object_names_every_system_and_category(tmp_path):
    answer = json.loads(run(tmp_path, sample(), "--json"))
    assert list(answer["systems"]) == ["recall", "substring", "bm25", "dense", "rrf"]
    recalled = answer["systems"]["recall"]
    assert recalled["overall"]["questions"] == 5
    assert recalled["overall"]["recall@5"] == 1.0
    assert recalled["categories"]["multi-hop"]["recall@10"] == 1.0
    assert recalled["categories"]["adversarial"]["questions"] == 1
    assert answer["systems"]["substring"]["overall"]["recall@10"] == 0.0
    assert 0 < answer["latency_ms"]["p50"] <= answer["latency_ms"]["p95"]


def test_each_channel_can_be_left_out(tmp_path):
    answer = json.loads(run(tmp_path, sample(), "--json", "--leave-out"))
    assert {f"without {channel}" for channel in CHANNELS} < set(answer["systems"])


def test_a_chat_with_an_assistant_is_loaded_as_turns(tmp_path):
    data = sample()
    for message in data["conversations"][0]["messages"]:
        message["speaker"] = {"Ada": "user", "Ben": "assistant"}[message["speaker"]]
    answer = json.loads(run(tmp_path, data, "--json"))
    assert answer["systems"]["recall"]["overall"]["recall@5"] >= 0.8


def test_the_database_is_left_as_it_was(tmp_path):
    out = run(tmp_path, sample())
    assert "recall@10" in out
    assert not MemoryNode.objects.exists()
    assert not User.objects.exists()


def test_a_file_that_cannot_be_read_is_a_clear_error(tmp_path):
    with pytest.raises(CommandError, match="could not be evaluated"):
        run(tmp_path, {"conversations": [{"messages": []}]})
