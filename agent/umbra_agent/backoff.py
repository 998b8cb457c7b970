"""The growing pauses of one caller while the controller is away."""

import asyncio
import random
from contextlib import suppress

import attrs

from umbra_agent import fence
from umbra_agent.errors import Away, CallError


@attrs.define
class Backoff:
    """Counts failures in a row. `said` is the last reason, so that a log says it once."""

    failures: int = 0
    said: str | None = None

    def is_news(self, exc: CallError) -> bool:
        """Tell whether this failure is worth a line: the first one, or of another kind."""
        reason = type(exc).__name__ if isinstance(exc, Away) else str(exc)
        if reason == self.said:
            return False
        self.said = reason
        return True

    def pause_s(self, exc: CallError) -> float:
        """Count the failure; return how long to wait before the next attempt."""
        self.failures += 1
        asked_s = exc.retry_after_s if isinstance(exc, Away) else None
        return fence.backoff_s(self.failures, random.random(), asked_s)  # noqa: S311

    async def pause(self, exc: CallError, unless: asyncio.Event) -> None:
        """Count the failure and wait, at most until the event."""
        await until(unless, self.pause_s(exc))

    def over(self) -> int:
        """Begin anew; return how many failures there had been."""
        failures, self.failures, self.said = self.failures, 0, None
        return failures


async def until(event: asyncio.Event, within_s: float) -> None:
    """Wait for the event, at most so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
