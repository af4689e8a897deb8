"""The stewards' webhook: that something waits, never what was said."""

from typing import Any

import httpx
from django.conf import settings

SECONDS = 5.0


class WebhookFailed(Exception):
    """The address did not take it; it is tried again later."""


def is_configured() -> bool:
    return bool(settings.NEURON_STEWARD_WEBHOOK)


def post(message: dict[str, Any]) -> None:
    """One POST; any 2xx is success, and a redirect is not followed. Raises WebhookFailed."""
    try:
        with httpx.stream(
            "POST", settings.NEURON_STEWARD_WEBHOOK, json=message, timeout=SECONDS, trust_env=False
        ) as answer:
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise WebhookFailed(type(error).__name__) from error
    if not 200 <= status < 300:
        raise WebhookFailed(f"HTTP {status}")
