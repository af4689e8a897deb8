"""One answer of a model, piece by piece, asked for again while nothing of it has come."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import stamina
from django.conf import settings

from conversations.imprint import Draft
from conversations.llm.events import Finished, ModelFailure, TextDelta, ToolUse

# No answer is worth more; a provider that sends a byte now and then cannot stretch it.
TOTAL_SECONDS_PER_SILENCE = 8
RETRIES = 3
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 8.0


async def stream(
    draft: Draft, tools: Sequence[Callable[..., Any]] = ()
) -> AsyncGenerator[TextDelta | ToolUse | Finished, None]:
    """The model's reply as it comes; the tools it may use are coroutine functions.

    Raises ModelFailure; closing or cancelling it closes the provider's socket.

    Tried again with back-off only while nothing of the reply has been passed on, and not before the provider's own
    Retry-After; one that asks for more than LONGEST_PAUSE_SECONDS is not asked again.
    """
    # pydantic-ai takes a second and 90 MB to import: for the processes that do ask a model.
    from conversations.llm.exchange import once

    begun = False

    def worth_retrying(error: Exception) -> bool | float:
        if not isinstance(error, ModelFailure) or error.permanent or begun:
            return False
        if error.wait is None:
            return True
        return error.wait <= LONGEST_PAUSE_SECONDS and max(error.wait, 0.01)

    seconds = float(settings.NEURON_MODEL_TIMEOUT_S)
    ends_at = time.monotonic() + seconds * TOTAL_SECONDS_PER_SILENCE
    async for attempt in stamina.retry_context(
        on=worth_retrying,
        attempts=RETRIES,
        wait_initial=FIRST_PAUSE_SECONDS,
        wait_jitter=FIRST_PAUSE_SECONDS,
        wait_max=LONGEST_PAUSE_SECONDS,
        timeout=30,
    ):
        with attempt:
            async with aclosing(once(draft, tools, seconds, ends_at)) as events:
                async for event in events:
                    begun = begun or not isinstance(event, Finished)
                    yield event
