"""System checks: a policy file that cannot be used stops the start."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from conversations import stewardship


@register
def policy_file_is_usable(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The operator's policies are read at start, so that a bad one is never first met by a person's message."""
    try:
        stewardship.load(stewardship.POLICY_FILE)
    except stewardship.PolicyError as error:
        return [
            Error(
                f"The policy file cannot be used. {error}",
                hint="Mend that line, or restore conversations/data/stewardship.toml from the release.",
                id="conversations.E001",
            )
        ]
    return []
