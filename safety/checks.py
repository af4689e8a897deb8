"""System checks: a data file of the safety layer that cannot be used stops the start."""

from collections.abc import Callable
from typing import Any

from django.core.checks import CheckMessage, Error, register

from safety import directives, lexicon, quality, resources, screening, seal, semantic

_HINT = "Restore the file from the release, or mend it and run manage.py seal_safety_data (docs/safety.md)."


@register
def safety_data_is_usable(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Every list, threshold, text and help line is read at start, and never skipped."""
    parts: list[tuple[str, Callable[[], object]]] = [
        ("safety.E001", lexicon.lexicon),
        ("safety.E002", screening.thresholds),
        ("safety.E003", directives.wellbeing_directive),
        ("safety.E004", directives.safe_mode_refusal),
        ("safety.E005", directives.withheld_reply),
        ("safety.E006", resources.defaults),
        ("safety.E007", semantic.weights),
        ("safety.E008", quality.recorded),
        ("safety.E009", seal.check),
    ]
    problems: list[CheckMessage] = []
    for check_id, load in parts:
        try:
            load()
        except lexicon.LexiconError as error:
            problems.append(
                Error(f"The safety layer's data cannot be used. {error}", hint=_HINT, id=check_id)
            )
    return problems
