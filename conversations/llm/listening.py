"""A model's reply for plain code: the loop that talks to the provider turns in the caller's thread, while it waits.

So what reads and writes the database is all in one thread, and the loop is kept, with its connections to the provider,
from one reply to the next.
"""

import asyncio
import functools
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from conversations.imprint import Draft
from conversations.llm.events import Finished, TextDelta, ToolUse
from conversations.llm.providers import keep_connections
from conversations.llm.stream import stream

_kept = threading.local()
_END = object()


def listen(
    draft: Draft, functions: Sequence[Callable[..., Any]] = (), *, patience: float = 60.0
) -> Generator[TextDelta | ToolUse | Finished | None]:
    """The events of `stream`, and None whenever there was none for `patience` seconds.

    The tools' functions are called in the caller's thread. Raises ModelFailure; closing it closes the provider's
    connection.
    """
    loop = _loop_of_thread()
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def hear() -> None:
        tools = [_called_by_caller(function, heard) for function in functions]
        async with aclosing(stream(draft, tools)) as events:
            async for event in events:
                heard.put_nowait(event)

    # A task of its own, which the provider's library never leaves: stopping is one cancellation.
    hearing = loop.create_task(hear())
    hearing.add_done_callback(lambda _: heard.put_nowait(_END))
    try:
        while (event := loop.run_until_complete(_next(heard, patience))) is not _END:
            if isinstance(event, _Call):
                event.make()
            else:
                yield event
        hearing.result()
    finally:
        hearing.cancel()
        loop.run_until_complete(asyncio.wait({hearing}))


def _loop_of_thread() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop | None = getattr(_kept, "loop", None)
    if loop is None:
        loop = _kept.loop = asyncio.new_event_loop()
        keep_connections(loop)
    return loop


async def _next(heard: asyncio.Queue[Any], patience: float) -> Any:
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            return await heard.get()
    return None


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool that the model uses, to be called where the database is."""

    call: Callable[[], Any]
    result: asyncio.Future[Any]

    def make(self) -> None:
        try:
            value = self.call()
        except Exception as error:  # noqa: BLE001 - it is raised where the tool was used
            self.result.set_exception(error)
        else:
            self.result.set_result(value)


def _called_by_caller(function: Callable[..., Any], heard: asyncio.Queue[Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def ask(*arguments: Any, **named: Any) -> Any:
        result = asyncio.get_running_loop().create_future()
        heard.put_nowait(_Call(functools.partial(function, *arguments, **named), result))
        return await result

    return ask
