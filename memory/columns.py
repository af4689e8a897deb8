"""A column that holds the transaction that last changed its row, and the question which rows a reader has not seen."""

from typing import Any

from django.db import models
from django.db.models.expressions import Func
from django.db.models.lookups import Lookup


class CurrentTransaction(Func):
    """The id of the transaction that runs, which never wraps around."""

    function = "pg_current_xact_id"
    arity = 0


class TransactionId(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's xid8. Set by the database alone: by default on insert, by a trigger on update."""

    def __init__(self, **options: Any) -> None:
        options |= {"editable": False, "db_default": CurrentTransaction(output_field=models.TextField())}
        super().__init__(**options)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, options = super().deconstruct()
        del options["editable"], options["db_default"]
        return str(name), path, list(args), options

    def db_type(self, connection: Any) -> str:
        return "xid8"

    def get_prep_value(self, value: Any) -> Any:
        # As text: a number would arrive as a bigint, which PostgreSQL does not turn into an xid8.
        return str(value) if isinstance(value, int) else super().get_prep_value(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> int | None:
        return None if value is None else int(value)


@TransactionId.register_lookup
class UnseenIn(Lookup):
    """`changed_in__unseen_in=snapshot`: rows last changed by a transaction which that snapshot does not show.

    The snapshot is the text of `pg_current_snapshot()`. Unlike a time or a sequence it knows of transactions that had
    begun but not ended, so that what they commit later is not missed. The first comparison is for the index.
    """

    lookup_name = "unseen_in"
    prepare_rhs = False

    def get_db_prep_lookup(self, value: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        return "%s", (value,)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[str | int, ...]]:
        left, left_values = self.process_lhs(compiler, connection)
        right, right_values = self.process_rhs(compiler, connection)
        text = (
            f"({left} >= pg_snapshot_xmin({right}::pg_snapshot)"
            f" AND NOT pg_visible_in_snapshot({left}, {right}::pg_snapshot))"
        )
        return text, (*left_values, *right_values, *left_values, *right_values)
