"""One exchange with a provider, through pydantic-ai, with every way it can fail turned into one error."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
from pydantic_ai import Agent, Tool
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelHTTPError,
    RunCancelled,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits

from conversations.imprint import Draft
from conversations.llm.events import Finished, ModelFailure, TextDelta, ToolUse
from conversations.llm.providers import BUILT_IN, ModelSettingError, describe, model_for

logger = logging.getLogger(__name__)

MOST_MODEL_CALLS = 8
# Behind the last event and before everything is closed, which nobody should wait for.
_OVER = object()


def warm_up() -> None:
    """Import what asking the model takes, its client library included, which takes longest of all."""

    async def look() -> None:
        async with model_for(describe()):
            pass

    try:
        asyncio.run(look())
    except ModelSettingError as error:
        logger.warning("the model cannot be asked: %s", error)


async def once(
    draft: Draft, tools: Sequence[Callable[..., Any]], silence: float, ends_at: float
) -> AsyncGenerator[TextDelta | ToolUse | Finished, None]:
    """One exchange with the provider."""
    try:
        description = describe()
    except ModelSettingError as error:
        raise ModelFailure("not_configured", str(error), permanent=True) from error
    with_tools = draft.with_tools and bool(tools) and description.kind != BUILT_IN
    async with model_for(description) as model:
        source = _with_tools(model, draft, tools) if with_tools else _alone(model, draft)
        try:
            async with aclosing(source) as events:
                while True:
                    async with asyncio.timeout(min(silence, ends_at - time.monotonic())):
                        event = await anext(events, None)
                    if event is None:
                        break
                    piece = Finished(description.name) if event is _OVER else _piece(event)
                    if piece is not None:
                        yield piece
        except TimeoutError as error:
            late = time.monotonic() >= ends_at
            detail = "the answer took too long" if late else f"nothing for {silence:.0f} s"
            raise ModelFailure("timeout", detail, permanent=late) from error
        except (
            ModelAPIError,
            httpx2.HTTPError,
            UnexpectedModelBehavior,
            UsageLimitExceeded,
            RunCancelled,
        ) as error:
            raise failure_from(error, with_tools=with_tools) from error
        except (UserError, ValueError, KeyError, TypeError, AttributeError) as error:
            # What client libraries raise over an answer that is no answer.
            raise ModelFailure("rubbish", type(error).__name__) from error


async def _alone(model: Model, draft: Draft) -> AsyncGenerator[Any, None]:
    """One request without tools: what an agent does around it would cost as much again as the request itself."""
    asked = ModelRequest(parts=[UserPromptPart(draft.message)], instructions=draft.system)
    async with model_request_stream(model, [*_messages(draft), asked]) as events:
        async for event in events:
            yield event
        yield _OVER


async def _with_tools(
    model: Model, draft: Draft, tools: Sequence[Callable[..., Any]]
) -> AsyncGenerator[Any, None]:
    agent: Agent[None, str] = Agent(
        model,
        instructions=draft.system,
        tools=[Tool(function) for function in tools],
        retries=1,
    )
    async with agent.run_stream_events(
        draft.message,
        message_history=_messages(draft),
        usage_limits=UsageLimits(request_limit=MOST_MODEL_CALLS),
    ) as events:
        async for event in events:
            yield event
        yield _OVER


def _piece(event: Any) -> TextDelta | ToolUse | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return TextDelta(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return TextDelta(text)
        case FunctionToolCallEvent():
            return ToolUse(event.part.tool_name)
    return None


def _messages(draft: Draft) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    for q, a in draft.history:
        messages.append(ModelRequest(parts=[UserPromptPart(q)]))
        messages.append(ModelResponse(parts=[TextPart(a)]))
    return messages


# Ollama and vLLM refuse tools with 400, OpenRouter with 404, llama.cpp's server with 500.
_REFUSES_TOOLS = {400, 404, 422, 500, 501}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds a Retry-After asks for, given as a number or as a date; None where there is none to read."""
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None


def failure_from(error: Exception, *, with_tools: bool = False) -> ModelFailure:
    """The failure behind a client library's error."""
    if isinstance(error, ModelHTTPError):
        status = error.status_code
        if with_tools and status in _REFUSES_TOOLS and "tool" in str(error.body).lower():
            return ModelFailure("no_tools", str(status), permanent=True)
        wait = _retry_after(error.headers or {})
        if status == 429:
            return ModelFailure("rate_limited", "429", wait=wait)
        if status >= 500 or status == 408:
            return ModelFailure("server_error", str(status), wait=wait)
        return ModelFailure("refused", str(status), permanent=True)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
            return ModelFailure("unreachable")
        if isinstance(cause, httpx2.TimeoutException):
            return ModelFailure("timeout")
        if isinstance(cause, httpx2.RemoteProtocolError | httpx2.ReadError):
            return ModelFailure("cut_off")
        if isinstance(cause, json.JSONDecodeError | UnicodeDecodeError):
            return ModelFailure("rubbish", type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, ModelAPIError):
        return ModelFailure("cut_off", type(error).__name__)
    return ModelFailure("rubbish", type(error).__name__)
