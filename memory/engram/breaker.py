"""The circuit breaker of the remote engram, one for all processes. It lives in Valkey, in scripts that run whole.

After 3 failures in a row nobody calls for 30 s; then one call is let through as a probe, which closes it or opens
it for another 30 s. Every permission carries the generation it was given in: the outcome of a call that began
before the breaker opened or closed says nothing about the state after.

Time is what passed, never what a clock shows. Processes on the machine that opened it compare its monotonic clock;
others compare the clock of Valkey's server.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from memory.engram.errors import EngramError, Kind

FAILURES = 3
OPEN_MS = 30_000
KEY = "neuron:engram:breaker"

# (boot id of this machine, milliseconds since it started); the id is "" where there is none.
Clock = Callable[[], tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave for one call; its outcome must be reported with it."""

    generation: int
    is_probe: bool


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What an operator sees. `seconds_left` is how long no call will be made; times are Unix seconds."""

    name: str
    failures_in_a_row: int
    seconds_left: float
    failures: int
    successes: int
    probes: int
    openings: int
    last_error: str
    last_error_at: int | None

    @property
    def is_open(self) -> bool:
        return self.name != "closed"


_PASSED = """
local kept = redis.call('HMGET', KEYS[1], 'open', 'since', 'wait', 'boot', 'ticks', 'generation')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local generation = tonumber(kept[6] or 0)
local function start_wait(milliseconds)
    redis.call('HSET', KEYS[1], 'open', 1, 'since', now, 'wait', milliseconds,
        'boot', ARGV[1], 'ticks', ARGV[2], 'generation', generation + 1)
end
local function left()
    local passed = now - tonumber(kept[2] or 0)
    if ARGV[1] ~= '' and kept[4] == ARGV[1] then
        passed = tonumber(ARGV[2]) - tonumber(kept[5])
    end
    if passed < 0 then
        redis.call('HSET', KEYS[1], 'since', now, 'boot', ARGV[1], 'ticks', ARGV[2])
        passed = 0
    end
    return tonumber(kept[3] or 0) - passed
end
"""
_ASK = (
    _PASSED
    + """
if kept[1] ~= '1' then return {0, generation, 0} end
local remaining = left()
if remaining > 0 then return {remaining, 0, 0} end
start_wait(ARGV[3])
redis.call('HINCRBY', KEYS[1], 'probes', 1)
return {0, generation + 1, 1}
"""
)
_SUCCEEDED = """
redis.call('HINCRBY', KEYS[1], 'successes', 1)
local kept = redis.call('HMGET', KEYS[1], 'open', 'generation', 'in_a_row')
if tonumber(kept[2] or 0) ~= tonumber(ARGV[1]) then return 0 end
if kept[3] ~= '0' then redis.call('HSET', KEYS[1], 'in_a_row', 0) end
if kept[1] ~= '1' then return 0 end
redis.call('HSET', KEYS[1], 'open', 0, 'generation', ARGV[1] + 1)
return 1
"""
_FAILED = (
    _PASSED
    + """
redis.call('HINCRBY', KEYS[1], 'failures', 1)
redis.call('HSET', KEYS[1], 'last_error', ARGV[6], 'last_error_at', time[1])
if generation ~= tonumber(ARGV[5]) then return 0 end
local in_a_row = redis.call('HINCRBY', KEYS[1], 'in_a_row', 1)
if kept[1] ~= '1' and in_a_row < tonumber(ARGV[4]) then return 0 end
start_wait(ARGV[3])
redis.call('HINCRBY', KEYS[1], 'openings', 1)
return 1
"""
)
# Once over all processes for each time that it was open.
_RECOVERED = """
local kept = redis.call('HMGET', KEYS[1], 'open', 'openings', 'recovered')
if kept[1] == '1' or (kept[2] or '0') == (kept[3] or '0') then return 0 end
redis.call('HSET', KEYS[1], 'recovered', kept[2])
return 1
"""
_LOOK = (
    _PASSED
    + """
if kept[1] ~= '1' then return 0 end
return math.max(left(), 0)
"""
)


def machine_clock() -> tuple[str, int]:
    """The boot id and the time since boot, the same for every process of a Linux machine; elsewhere no id."""
    boot = _boot_id()
    if not boot:
        return "", 0
    return boot, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


@lru_cache(maxsize=1)
def _boot_id() -> str:
    source = Path("/proc/sys/kernel/random/boot_id")
    return source.read_text().strip() if source.exists() else ""


@lru_cache(maxsize=4)
def valkey(url: str) -> redis.Redis:
    """A client of this process for that address; its connections are kept and may be used by any thread."""
    return redis.Redis.from_url(
        url,
        socket_timeout=2,
        socket_connect_timeout=2,
        decode_responses=True,
        # Once more, for a connection that a restart has closed; else whoever asks would wait.
        retry=Retry(NoBackoff(), 1),
    )


class Breaker:
    """Ask before each call, report after it."""

    def __init__(
        self, client: redis.Redis, *, key: str, open_ms: int = OPEN_MS, clock: Clock = machine_clock
    ) -> None:
        self._client: Any = client
        self._key = key
        # A boot has a breaker of its own, which is nobody else's business.
        self.is_shared = key == KEY
        self._open_ms = open_ms
        self._clock = clock
        # A probe that is never reported (its process died) holds the others off for as long as it may take.
        self._probe_ms = max(open_ms, settings.ENGRAM_CONNECT_TIMEOUT_MS + settings.ENGRAM_TIMEOUT_MS + 5000)

    @classmethod
    def from_settings(cls) -> "Breaker":
        return cls(valkey(settings.REDIS_URL), key=KEY, open_ms=OPEN_MS)

    def ask(self) -> Permit:
        """Leave for one call. Raises EngramError (not tried) while there is none, or Valkey does not answer."""
        left, generation, probe = self._run(_ASK, *self._clock(), self._probe_ms)
        if left > 0:
            raise EngramError(Kind.NOT_TRIED, f"the breaker is open for another {left / 1000:.0f} s")
        return Permit(generation, bool(probe))

    def succeeded(self, permit: Permit) -> bool:
        """Report an answer; True where it closed the breaker."""
        return bool(self._run(_SUCCEEDED, permit.generation))

    def failed(self, permit: Permit, reason: str) -> bool:
        """Report a failure; True where it opened the breaker, for the first time or again."""
        return bool(
            self._run(_FAILED, *self._clock(), self._open_ms, FAILURES, permit.generation, reason[:200])
        )

    def has_recovered(self) -> bool:
        """Whether it is closed again; True for one asker only each time that it was open."""
        return bool(self._run(_RECOVERED))

    def look(self) -> BreakerState:
        """The present state, changing nothing. Raises EngramError where Valkey does not answer."""
        left = int(self._run(_LOOK, *self._clock()))
        try:
            kept: dict[str, str] = self._client.hgetall(self._key)
        except (redis.exceptions.RedisError, OSError):
            raise EngramError(Kind.NOT_TRIED, "the breaker cannot be asked") from None

        def number(name: str) -> int:
            return int(kept.get(name, 0))

        is_open = number("open") == 1
        return BreakerState(
            name=("open" if left else "waiting for its probe") if is_open else "closed",
            failures_in_a_row=number("in_a_row"),
            seconds_left=left / 1000,
            failures=number("failures"),
            successes=number("successes"),
            probes=number("probes"),
            openings=number("openings"),
            last_error=kept.get("last_error", ""),
            last_error_at=number("last_error_at") or None,
        )

    def _run(self, script: str, *arguments: object) -> Any:
        try:
            return self._client.eval(script, 1, self._key, *arguments)
        except (redis.exceptions.RedisError, OSError):
            raise EngramError(Kind.NOT_TRIED, "the breaker cannot be asked") from None
