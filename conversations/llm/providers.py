"""Which model answers: by setting, else an Ollama on this machine, else the built-in responder."""

import logging
import time
from dataclasses import dataclass
from functools import lru_cache

import httpx2
from django.conf import settings
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel

from conversations.llm import builtin

logger = logging.getLogger(__name__)

OLLAMA = "http://127.0.0.1:11434"
OLLAMA_SECONDS = 0.5
PROBED_FOR_SECONDS = 60.0
CONNECT_SECONDS = 5.0
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
    found = _ollama_model()
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


def _ollama_model() -> str:
    """The first chat model of an Ollama on loopback, or ""; asked once a minute in each process."""
    return _probe(int(time.monotonic() / PROBED_FOR_SECONDS))


@lru_cache(maxsize=1)
def _probe(minute: int) -> str:
    name = ""
    try:
        answer = httpx2.get(f"{OLLAMA}/api/tags", timeout=OLLAMA_SECONDS, trust_env=False)
        names = [str(model["name"]) for model in answer.json().get("models", [])]
        name = next((one for one in names if "embed" not in one), "")
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        logger.debug("no Ollama on this machine")
    return name


def build(description: ModelDescription, client: httpx2.AsyncClient) -> Model:
    """The model over a client that lives for one call; its own retries are off, because `stream` has them."""
    if description.kind == BUILT_IN:
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
    return OpenAIChatModel(description.name, provider=OpenAIProvider(openai_client=openai))


def http_client() -> httpx2.AsyncClient:
    """A fresh client: one shared between event loops fails with a closed loop."""
    seconds = float(settings.NEURON_MODEL_TIMEOUT_S)
    return httpx2.AsyncClient(timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS), trust_env=False)
