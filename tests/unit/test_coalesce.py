"""One flush for what arrives together."""

import asyncio
from collections.abc import Sequence

import pytest

from umbra_compute.coalesce import Coalescer


class Recorder:
    """A flush that waits until it is let through, and answers each item with its double."""

    def __init__(self) -> None:
        self.flushes: list[list[int]] = []
        self.gate = asyncio.Event()

    async def flush(self, items: Sequence[int]) -> list[int | Exception]:
        self.flushes.append(list(items))
        await self.gate.wait()
        return [ValueError("bad") if item < 0 else 2 * item for item in items]


async def test_what_comes_during_a_flush_goes_with_the_next() -> None:
    recorder = Recorder()
    coalesce = Coalescer(recorder.flush)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(coalesce(n)) for n in range(10)]
        await asyncio.sleep(0)
        assert recorder.flushes == [[0]]
        recorder.gate.set()
    assert [call.result() for call in calls] == [2 * n for n in range(10)]
    assert recorder.flushes == [[0], list(range(1, 10))]


async def test_a_bad_item_does_not_fail_its_neighbours() -> None:
    recorder = Recorder()
    recorder.gate.set()
    coalesce = Coalescer(recorder.flush)
    good, bad = await asyncio.gather(coalesce(1), coalesce(-1), return_exceptions=True)
    assert good == 2
    assert isinstance(bad, ValueError)


async def test_a_failing_flush_fails_its_own_callers_and_no_later_ones() -> None:
    failing = [True]

    async def flush(items: Sequence[int]) -> list[int | Exception]:
        if failing.pop() if failing else False:
            raise ConnectionResetError("away")
        return list(items)

    coalesce = Coalescer(flush)
    first, second = await asyncio.gather(coalesce(1), coalesce(2), return_exceptions=True)
    assert isinstance(first, ConnectionResetError)
    assert second == 2
    assert await coalesce(3) == 3


async def test_a_caller_that_is_cancelled_leaves_the_others_served() -> None:
    recorder = Recorder()
    coalesce = Coalescer(recorder.flush)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(coalesce(n)) for n in range(4)]
        await asyncio.sleep(0)
        calls[1].cancel()  # it would have led the next flush
        await asyncio.sleep(0)
        recorder.gate.set()
    assert calls[1].cancelled()
    assert [calls[n].result() for n in (0, 2, 3)] == [0, 4, 6]


async def test_a_cancelled_leader_does_not_leave_the_others_waiting() -> None:
    recorder = Recorder()
    coalesce = Coalescer(recorder.flush)
    async with asyncio.TaskGroup() as group:
        leader, second = group.create_task(coalesce(1)), group.create_task(coalesce(2))
        await asyncio.sleep(0)
        leader.cancel()
        recorder.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await leader
        assert await second == 4


async def test_a_flush_is_bounded() -> None:
    recorder = Recorder()
    recorder.gate.set()
    coalesce = Coalescer(recorder.flush)
    await asyncio.gather(*(coalesce(n) for n in range(1200)))
    assert max(len(flush) for flush in recorder.flushes) <= 500
