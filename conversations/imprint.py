"""Layer 3: who answers. The one place where every system prompt is made, and the prompt's budget."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from conversations.models import Imprint
from safety.directives import wellbeing_directive

PROMPTS = Path(__file__).resolve().parent / "prompts"
BEGIN_MEMORY, END_MEMORY = "BEGIN MEMORY", "END MEMORY"
GUIDANCE = "Guidance for this message: "
PINNED_SHARE = 0.15  # of the prompt's room; a person may pin more than a prompt can hold
LONGEST_PASSAGE = 1200  # characters of each side of a remembered exchange


@dataclass(frozen=True, slots=True)
class Passage:
    """A remembered exchange that an answer may draw on."""

    node_id: UUID
    session_id: UUID | None
    turn_index: int | None
    occurred_at: datetime
    title: str
    q: str
    a: str
    why: str
    is_here: bool = True  # whether its session is one of this Neuron's, or was talked elsewhere

    @property
    def link(self) -> str:
        """The address of the turn's page; of the page of what is kept for a fact that was said in none here."""
        if self.session_id and self.is_here:
            return f"/sessions/{self.session_id}/#turn-{self.turn_index}"
        return f"/kept/#kept-{self.node_id}" if self.why == "kept" else ""

    def as_line(self, tz: ZoneInfo) -> str:
        """One JSON line; what could end the line or open a tag is escaped."""
        record = {
            "date": self.occurred_at.astimezone(tz).strftime("%Y-%m-%d %H:%M"),
            "link": self.link,
            "title": self.title,
            "kept" if self.why == "kept" else "person": self.q[:LONGEST_PASSAGE],
            "neuron": self.a[:LONGEST_PASSAGE],
        }
        return json_line({key: value for key, value in record.items() if value})


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything a model is given for one answer."""

    system: str
    history: tuple[tuple[str, str], ...]
    message: str
    with_tools: bool
    passages: tuple[Passage, ...] = field(default=())


# JSON leaves these as they are, and some readers take the last three for line ends.
_ESCAPED = {ord(one): f"\\u{ord(one):04x}" for one in "<>\u2028\u2029\x85"}


def json_line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False).translate(_ESCAPED)


@lru_cache(maxsize=8)
def _template(name: str) -> str:
    return (PROMPTS / f"{name}.txt").read_text(encoding="utf-8").strip()


def tokens(text: str) -> int:
    """An estimate: four bytes of UTF-8 a token, the rule of thumb of OpenAI's tokenizers for English.

    It is too high for few texts, and the budget has slack for those where it is too low.
    """
    return len(text.encode()) // 4 + 1


def system_prompt(
    *,
    imprint: Imprint | None,
    soft_bell: bool,
    now: datetime,
    tz: ZoneInfo,
    intent: dict[str, Any] | None = None,
    passages: Sequence[Passage] = (),
    kept: Sequence[dict[str, str]] = (),
    guidance: str = "",
    task: str = "",
) -> str:
    """The system prompt of every model call there is; with a soft bell the wellbeing directive stands first.

    `guidance` is the operator's word on this message, which the answer is to follow. `task` names the template of a
    call that answers no message, such as the reading of sessions for themes.
    """
    parts = []
    if soft_bell:
        parts.append(wellbeing_directive())
    parts.append(
        _template("identity").format(
            imprint=imprint.system_prompt if imprint else _template("default_imprint"),
            name=imprint.name if imprint else "Neuron",
            today=now.astimezone(tz).strftime("%A, %-d %B %Y, %H:%M"),
            time_zone=tz.key,
        )
    )
    parts += [_template("safety"), _template("memory")]
    if task:
        parts.append(_template(task))
    if guidance:
        parts.append(GUIDANCE + " ".join(guidance.split()))
    if intent or passages or kept:
        head = json_line(intent or {"intent": "none"})
        lines = [*(json_line(fact) for fact in kept), *(passage.as_line(tz) for passage in passages)]
        parts.append("\n".join([BEGIN_MEMORY, head, *lines, END_MEMORY]))
    return "\n\n".join(parts)


def fitting(costs: Sequence[int], room: float, *, evenly: bool = False) -> list[int]:
    """Which of them fit into the room: the first ones, or as many as fit spread evenly over all of them."""
    count = len(costs)
    while evenly and count:
        step = (len(costs) - 1) / max(1, count - 1)
        chosen = [round(place * step) for place in range(count)]
        if sum(costs[at] for at in chosen) <= room:
            return chosen
        count = count * 9 // 10
    first = []
    for at, cost in enumerate(costs):
        room -= cost
        if room < 0:
            break
        first.append(at)
    return first


def prepare(
    *,
    imprint: Imprint | None,
    soft_bell: bool,
    message: str,
    history: Sequence[tuple[str, str]],
    passages: Sequence[Passage],
    intent: dict[str, Any] | None,
    with_tools: bool,
    budget: int,
    now: datetime,
    tz: ZoneInfo,
    kept: Sequence[dict[str, str]] = (),
    guidance: str = "",
) -> Draft:
    """Fit the prompt into `budget` tokens: the message whole, what is pinned (`kept`) up to a part of the room,
    passages first come, the newest turns of the thread.

    What does not fit falls out of the prompt, never out of memory. A message that alone is over the budget is
    still sent whole, under the bare system prompt: no passage and no earlier turn goes with it, and it is the
    provider that may refuse it.
    """
    bare = system_prompt(
        imprint=imprint, soft_bell=soft_bell, now=now, tz=tz, intent=intent, guidance=guidance
    )
    left = budget - tokens(bare) - tokens(message)
    pinned = [tokens(json_line(fact)) for fact in kept]
    kept = [kept[at] for at in fitting(pinned, left * PINNED_SHARE)]
    left -= sum(pinned[: len(kept)])
    # A look-up is answered from memory, so memory may take most of the room; else the thread has the larger share.
    look_up = intent is not None and intent["intent"] not in ("none", "remember")
    costs = [tokens(passage.as_line(tz)) for passage in passages]
    evenly = intent is not None and intent["intent"] == "this_conversation"
    chosen = fitting(costs, left * (0.8 if look_up else 0.4), evenly=evenly)
    shown = [passages[at] for at in chosen]
    left -= sum(costs[at] for at in chosen)
    if intent is not None and look_up and len(shown) < len(passages):
        intent = intent | {"left_out": len(passages) - len(shown)}
    thread: list[tuple[str, str]] = []
    for q, a in reversed(history):
        cost = tokens(q) + tokens(a)
        if cost > left:
            break
        thread.append((q, a))
        left -= cost
    return Draft(
        system=system_prompt(
            imprint=imprint,
            soft_bell=soft_bell,
            now=now,
            tz=tz,
            intent=intent,
            passages=shown,
            kept=kept,
            guidance=guidance,
        ),
        history=tuple(reversed(thread)),
        message=message,
        with_tools=with_tools,
        passages=tuple(shown),
    )
