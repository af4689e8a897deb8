"""What hits are limited to: times, kinds, a session, and what the asker has before them anyway."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from memory.retrieval import packed
from memory.retrieval.fusion import Ints


@dataclass(frozen=True)
class Filters:
    """`sql` is a condition on memory_utterance as `u`, for the first four; its `values` go with it."""

    since: datetime | None = None
    until: datetime | None = None
    node_types: tuple[str, ...] = ()
    session_id: UUID | None = None
    left_out: tuple[int, ...] = ()  # utterances that are no hits, whatever they hold
    sql: str = field(init=False, default="")
    values: tuple[Any, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        clauses: list[tuple[str, Any]] = []
        if self.since is not None:
            clauses.append((" AND u.occurred_at >= %s", self.since))
        if self.until is not None:
            clauses.append((" AND u.occurred_at < %s", self.until))
        if self.node_types:
            clauses.append((" AND u.node_type = ANY(%s)", list(self.node_types)))
        if self.session_id is not None:
            clauses.append((" AND u.session_id = %s", self.session_id))
        object.__setattr__(self, "sql", "".join(clause for clause, _ in clauses))
        object.__setattr__(self, "values", tuple(value for _, value in clauses))

    def first(self, owner_id: int, ordered: Ints, wanted: int) -> list[int]:
        """The first `wanted` of the owner's utterances in this order that pass.

        A few are asked for at a time: nearly all pass nearly always, and an owner may have very many.
        """
        found: list[int] = []
        at, width = 0, wanted + wanted // 4
        while len(found) < wanted and at < len(ordered):
            some = ordered[at : at + width]
            passes = np.isin(some, self.left_out, invert=True)
            if self.sql:
                passes &= np.isin(some, self._passing(owner_id, some))
            found += some[passes].tolist()
            at, width = at + width, 4 * width
        return found[:wanted]

    def _passing(self, owner_id: int, ids: Ints) -> Ints:
        [(sent,)] = packed.fetch(
            "SELECT string_agg(int8send(u.id), '') FROM memory_utterance u"
            f" WHERE u.id = ANY(%s::bigint[]) AND u.owner_id = %s{self.sql}",
            [packed.literal(ids.tolist()), owner_id, *self.values],
        )
        return packed.numbers(sent, ">i8")
