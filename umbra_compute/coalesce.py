"""One statement for what arrives together.

While a flush is running, what arrives waits and goes with the next one. There is no timer, so
nothing is added to a call that comes alone, and no task: whoever comes first flushes, and hands
over to one that waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST: Final = 500  # items in a flush: a statement of so many takes some 10 ms


class _Entry(Generic[Item, Answer]):
    """One caller's item: `turn` is set when it has an outcome, or when it is to flush."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.outcome: tuple[Answer] | Exception | None = None

    def wake(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)


class Coalescer(Generic[Item, Answer]):
    """Calls `flush` with what came meanwhile; each item gets its own answer or exception.

    `flush` returns one answer per item, in order. An answer that is an exception is raised to
    that item's caller alone; an exception that flush raises goes to every caller of that flush.
    """

    def __init__(
        self, flush: Callable[[Sequence[Item]], Awaitable[Sequence[Answer | Exception]]]
    ) -> None:
        self._flush = flush
        self._waiting: list[_Entry[Item, Answer]] = []
        self._flushing = False

    async def __call__(self, item: Item) -> Answer:
        """Return the item's answer after the flush that held it."""
        mine: _Entry[Item, Answer] = _Entry(item)
        self._waiting.append(mine)
        if self._flushing:
            await self._wait_for_turn(mine)
        if mine.outcome is None:
            await self._lead()
        if isinstance(mine.outcome, Exception):
            raise mine.outcome
        if mine.outcome is None:
            raise AssertionError("a flush ended without this item's outcome")
        return mine.outcome[0]

    async def _wait_for_turn(self, mine: _Entry[Item, Answer]) -> None:
        try:
            await mine.turn
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
                if mine.turn.done() and not mine.turn.cancelled():
                    self._hand_over()  # it was to flush next
            raise

    async def _lead(self) -> None:
        """Flush the first MOST of what waits, this caller's item at their head, and hand over."""
        self._flushing = True
        batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        failure: Exception = ConnectionResetError("the flush was cancelled before its answer")
        try:
            answers = await self._flush([entry.item for entry in batch])
            for entry, answer in zip(batch, answers, strict=True):
                entry.outcome = answer if isinstance(answer, Exception) else (answer,)
        except Exception as exc:
            failure = exc
        finally:
            for entry in batch:
                if entry.outcome is None:
                    entry.outcome = failure
                entry.wake()
            self._hand_over()

    def _hand_over(self) -> None:
        if self._waiting:
            self._waiting[0].wake()
        else:
            self._flushing = False
