"""Which model answers: by setting, else what NEURON_MODEL_URL serves, else an Ollama here, else the built-in."""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import certifi
import httpx2
from django.conf import settings

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model

logger = logging.getLogger(__name__)

OLLAMA = "http://127.0.0.1:11434"
OLLAMA_SECONDS = 0.5
LISTING_SECONDS = 3.0
PROBED_FOR_SECONDS = 60.0
CONNECT_SECONDS = 5.0
# Between two messages of a conversation the connection stays, and its TLS; no longer than common gateways hold theirs.
KEPT_IDLE_SECONDS = 50.0
BUILT_IN = "built-in"
_KINDS = ("ollama", "openai", "anthropic")


class ModelSettingError(Exception):
    """NEURON_MODEL cannot be used; the sentence says what it may be."""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What is told about the model: `kind` is ollama, openai, anthropic or built-in; `sentence` is for people."""

    name: str
    kind: str
    address: str
    configured: bool
    sentence: str


def describe() -> ModelDescription:
    """The model that would answer now. Raises ModelSettingError for a setting that is none."""
    wanted = settings.NEURON_MODEL
    if wanted:
        kind, _, name = wanted.partition(":")
        if kind not in _KINDS or not name:
            raise ModelSettingError(
                f"NEURON_MODEL is {wanted!r}; it must be ollama:NAME, openai:NAME or anthropic:NAME."
            )
        address = settings.NEURON_MODEL_URL or (f"{OLLAMA}/v1" if kind == "ollama" else "")
        where = f" at {address}" if address else ""
        return ModelDescription(name, kind, address, True, f"{name} answers ({kind}{where}).")
    if settings.NEURON_MODEL_URL:
        address = settings.NEURON_MODEL_URL
        first = _first_served(address, settings.NEURON_MODEL_KEY, _this_minute())
        return ModelDescription(
            first, "openai", address, True, f"{first} answers (the first model at {address})."
        )
    found = _probe(_this_minute())
    if found:
        return ModelDescription(
            found, "ollama", f"{OLLAMA}/v1", True, f"{found} answers (Ollama on this machine)."
        )
    return ModelDescription(
        BUILT_IN,
        BUILT_IN,
        "",
        False,
        "No language model is set, so the built-in responder answers: it looks things up in memory. "
        "Set one with NEURON_MODEL, for instance: NEURON_MODEL=ollama:llama3.2 make run",
    )


def described() -> ModelDescription:
    """The model that would answer now, or in its place what is wrong with the setting."""
    try:
        return describe()
    except ModelSettingError as error:
        return ModelDescription("none", "none", "", False, f"No model can answer. {error}")


def _this_minute() -> int:
    """What keeps a look at an address for a minute in each process."""
    return int(time.monotonic() / PROBED_FOR_SECONDS)


@lru_cache(maxsize=1)
def _first_served(address: str, key: str, minute: int) -> str:
    """The first chat model that an OpenAI-compatible address lists. Raises ModelSettingError; failures are not kept."""
    try:
        answer = httpx2.get(
            f"{address.rstrip('/')}/models",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=LISTING_SECONDS,
            trust_env=False,
        )
        names = [str(model["id"]) for model in answer.json()["data"]]
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, TypeError) as error:
        logger.warning("NEURON_MODEL_URL lists no models: %s", type(error).__name__)
        names = []
    name = next((one for one in names if "embed" not in one), "")
    if not name:
        raise ModelSettingError(
            f"NEURON_MODEL_URL is {address!r}, but NEURON_MODEL is not set and that address lists no model. "
            "Name one: NEURON_MODEL=openai:NAME, or see whether the address is right and its server is running."
        )
    return name


@lru_cache(maxsize=1)
def _probe(minute: int) -> str:
    """The first chat model of an Ollama on loopback, or ""."""
    name = ""
    try:
        answer = httpx2.get(f"{OLLAMA}/api/tags", timeout=OLLAMA_SECONDS, trust_env=False)
        names = [str(model["name"]) for model in answer.json().get("models", [])]
        name = next((one for one in names if "embed" not in one), "")
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        logger.debug("no Ollama on this machine")
    return name


@dataclass(slots=True)
class _Kept:
    """What a loop keeps from one exchange to the next: the model it asked last, and its connections."""

    settings: tuple[Any, ...] = ()
    client: httpx2.AsyncClient | None = None
    model: "Model | None" = None


# A client belongs to the loop that it was made in: shared with another it fails with a closed loop.
_kept: WeakKeyDictionary[asyncio.AbstractEventLoop, _Kept] = WeakKeyDictionary()


def keep_connections(loop: asyncio.AbstractEventLoop) -> None:
    """Have this loop, which lives as long as its thread, keep its connections between exchanges."""
    _kept[loop] = _Kept()


@asynccontextmanager
async def model_for(description: ModelDescription) -> AsyncGenerator["Model"]:
    """The model to ask, over the connections that the running loop keeps, or else over ones for this exchange."""
    kept = _kept.get(asyncio.get_running_loop())
    if kept is None:
        async with _http_client() as client:
            yield _build(description, client)
        return
    wanted = (description, settings.NEURON_MODEL_KEY, settings.NEURON_MODEL_TIMEOUT_S)
    if kept.model is None or kept.settings != wanted:
        if kept.client is not None:
            await kept.client.aclose()
        kept.client = _http_client()
        kept.model, kept.settings = _build(description, kept.client), wanted
    yield kept.model


def _build(description: ModelDescription, client: httpx2.AsyncClient) -> "Model":
    """The model over this client; its own retries are off, because `stream` has them."""
    if description.kind == BUILT_IN:
        from pydantic_ai.models.function import FunctionModel

        from conversations.llm import builtin

        return FunctionModel(stream_function=builtin.respond, model_name=BUILT_IN)
    key = settings.NEURON_MODEL_KEY
    if description.kind == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        anthropic = AsyncAnthropic(
            api_key=key or "unset", base_url=description.address or None, http_client=client, max_retries=0
        )
        return AnthropicModel(description.name, provider=AnthropicProvider(anthropic_client=anthropic))
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    openai = AsyncOpenAI(
        api_key=key or "unset", base_url=description.address or None, http_client=client, max_retries=0
    )
    _send_messages_as_they_are(openai)
    return OpenAIChatModel(description.name, provider=OpenAIProvider(openai_client=openai))


def _send_messages_as_they_are(client: "AsyncOpenAI") -> None:
    """Have the client put messages into the request's body without looking at each.

    It holds every message against six types to find keys to rename, of which none has any: half a millisecond for
    each turn of the history. What comes as `extra_body` it takes as it is.
    """
    create = client.chat.completions.create

    async def create_unseen(*, messages: Any, extra_body: Any = None, **options: Any) -> Any:
        return await create(messages=[], extra_body={**(extra_body or {}), "messages": messages}, **options)

    client.chat.completions.create = create_unseen  # type: ignore[method-assign]


def _http_client() -> httpx2.AsyncClient:
    seconds = float(settings.NEURON_MODEL_TIMEOUT_S)
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(keepalive_expiry=KEPT_IDLE_SECONDS),
        trust_env=False,
        verify=_tls(),
    )


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """One for all clients: reading the authorities' certificates takes longer than the rest of a client."""
    return ssl.create_default_context(cafile=certifi.where())
