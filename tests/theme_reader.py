"""A scripted model that reads sessions for themes: it goes by a word of each topic, and talks of what it is given."""

import json
from collections import defaultdict
from typing import Any

TOPICS = {
    "Nights without sleep": ("sleep", "slept", "awake", "bed", "coffee", "nights", "night "),
    "The allotment": (
        "allotment",
        "plot",
        "beans",
        "garlic",
        "courgette",
        "soil",
        "shed",
        "chard",
        "compost",
    ),
    "Learning the guitar": ("guitar", "chord", "song", "string", "finger", "mandolin", "strum", "capo"),
    "Your mother's knee": ("mum", "knee", "operation", "surgeon", "crutches"),
    "Running": ("ran ", "run ", "running", "kilometres", "marathon", "jog", "ankle"),
    "Finding a new flat": ("flat", "landlord", "rent", "boxes", "deposit", "keys"),
    "Money": ("card", "bank", "overdraft", "bill", "savings", "pounds", "spreadsheet"),
    "Work": ("manager", "report", "audit", "priya", "hamburg", "customs", "work"),
    "Being an artist": ("paint", "art", "pottery", "draw"),
    "Family": ("kids", "family", "children", "adopt", "mom", "daughter"),
    "Speaking up for others": ("lgbtq", "community", "support group", "counsel", "mental health", "pride"),
    "Out of doors": ("camp", "nature", "hike", "hiking", "beach", "trip", "roadtrip"),
}


def respond(request: dict[str, Any]) -> str:
    """The answer to a request for notes, for themes, or to talk."""
    system = "\n".join(one["content"] for one in request["messages"] if one["role"] == "system")
    message = request["messages"][-1]["content"]
    if '{"notes": [' in system:
        return json.dumps({"notes": notes_of(records(message))})
    if '{"themes": [' in system:
        return json.dumps({"themes": themes_of(records(message))})
    return _talk(system)


def records(message: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in message.splitlines() if line.startswith("{")]


def notes_of(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_topic: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        said = line.get("person", "").lower()
        topic = next((name for name, words in TOPICS.items() if any(word in said for word in words)), None)
        if topic:
            by_topic[topic].append(line["id"])
    return [
        {"theme": topic, "gist": f"The person spoke of it: {topic.lower()}.", "turns": ids}
        for topic, ids in by_topic.items()
    ]


def themes_of(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        by_name[line["theme"]].append(line)
    return [
        {
            "name": name,
            "summary": f"You came back to this between {held[0]['from']} and {held[-1]['to']}.",
            "notes": [line["id"] for line in held],
            "resolved": False,
        }
        for name, held in by_name.items()
    ]


def _talk(system: str) -> str:
    """Of the themes that the prompt gives, each with its link; else a kind word."""
    for line in system.splitlines():
        if line.startswith("{") and '"themes"' in line:
            themes = json.loads(line)["themes"]
            told = "\n".join(f"- [{one['name']}]({one['link']}), {one['became']}" for one in themes)
            return f"These run through what you told me:\n\n{told}"
    return "I hear you. Tell me more."
