"""The waiters of this process."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from uuid import UUID

import attrs


@attrs.define
class Signal:
    """Work of one class has come. It goes from waiter to waiter until one takes it."""

    organization_id: UUID
    class_id: int
    tried: set[UUID] = attrs.Factory(set)  # nodes


@attrs.define(eq=False)
class ClaimWaiter:
    """A claim that found nothing, and waits. `accepts` says whether a class is worth a look."""

    organization_id: UUID
    node_id: UUID
    accepts: Callable[[int], bool]
    _woken: asyncio.Event = attrs.Factory(asyncio.Event)
    _signal: Signal | None = None

    @property
    def is_woken(self) -> bool:
        return self._woken.is_set()

    def wake(self, signal: Signal | None) -> None:
        self._signal = signal
        self._woken.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return True when woken, False after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True

    def take_signal(self) -> Signal | None:
        """Return what it was woken for, and be ready to be woken again."""
        signal, self._signal = self._signal, None
        self._woken.clear()
        return signal


class Wake:
    """The registry. What happens here is queued for the other controllers by `relay`."""

    def __init__(self) -> None:
        self.stopping = False
        self._claims: dict[UUID, dict[ClaimWaiter, None]] = {}
        self._jobs: dict[UUID, set[asyncio.Event]] = {}
        self._to_tell = asyncio.Event()
        self._told_ready: dict[tuple[UUID, int], int] = {}
        self._told_finished: list[UUID] = []

    # -- waiting

    @contextmanager
    def claim(
        self, organization_id: UUID, node_id: UUID, accepts: Callable[[int], bool]
    ) -> Iterator[ClaimWaiter]:
        """Register a waiting claim. Register first, look second: then no word falls between.

        A signal that the waiter was given and did not take is handed on when it leaves.
        """
        waiter = ClaimWaiter(organization_id, node_id, accepts)
        waiters = self._claims.setdefault(organization_id, {})
        waiters[waiter] = None
        try:
            yield waiter
        finally:
            del waiters[waiter]
            if not waiters:
                self._claims.pop(organization_id, None)
            self.pass_on(waiter.take_signal(), waiter.node_id)

    @contextmanager
    def job(self, job_id: UUID) -> Iterator[asyncio.Event]:
        """Register a wait for the end of a job; the event is set when it may have ended."""
        event = asyncio.Event()
        self._jobs.setdefault(job_id, set()).add(event)
        try:
            yield event
        finally:
            self._jobs[job_id].discard(event)
            if not self._jobs[job_id]:
                del self._jobs[job_id]

    # -- what happened here: wake and tell the others

    def ready(self, organization_id: UUID, class_id: int, jobs: int) -> None:
        """`jobs` jobs of a class may be claimed now."""
        self.heard_ready(organization_id, class_id, jobs)
        key = (organization_id, class_id)
        self._told_ready[key] = jobs + (self._told_ready.get(key, 0))
        self._to_tell.set()

    def finished(self, job_ids: Iterable[UUID]) -> None:
        """These jobs have ended."""
        ids = list(job_ids)
        self.heard_finished(ids)
        self._told_finished.extend(ids)
        if ids:
            self._to_tell.set()

    def node_changed(self, organization_id: UUID, node_id: UUID) -> None:
        """What this node can run may have changed."""
        self.heard_node(organization_id, node_id)

    # -- what was heard from another controller, or found by a poll

    def heard_ready(self, organization_id: UUID, class_id: int, jobs: int) -> None:
        """Wake at most one waiting claim per job, those first that have waited longest."""
        for _ in range(min(jobs, len(self._waiters(organization_id)))):
            if not self._give(Signal(organization_id, class_id)):
                return

    def heard_finished(self, job_ids: Iterable[UUID]) -> None:
        for job_id in job_ids:
            for event in self._jobs.get(job_id, ()):
                event.set()

    def heard_node(self, organization_id: UUID, node_id: UUID) -> None:
        for waiter in self._waiters(organization_id):
            if waiter.node_id == node_id:
                waiter.wake(None)

    def pass_on(self, signal: Signal | None, node_id: UUID) -> None:
        """This node found nothing behind the signal: let another one look."""
        if signal is not None:
            signal.tried.add(node_id)
            self._give(signal)

    def stop(self) -> None:
        """Wake everybody: long polls end with what they have."""
        self.stopping = True
        for waiters in self._claims.values():
            for waiter in waiters:
                waiter.wake(None)
        for events in self._jobs.values():
            for event in events:
                event.set()

    # -- for the relay

    async def something_to_tell(self) -> None:
        await self._to_tell.wait()

    def take_told(self) -> tuple[dict[tuple[UUID, int], int], list[UUID]]:
        """Return what the others have not been told yet, and forget it."""
        told = (self._told_ready, self._told_finished)
        self._told_ready, self._told_finished = {}, []
        self._to_tell.clear()
        return told

    def waiting_organizations(self) -> list[UUID]:
        return list(self._claims)

    def waited_for(self) -> list[UUID]:
        return list(self._jobs)

    def _waiters(self, organization_id: UUID) -> dict[ClaimWaiter, None]:
        return self._claims.get(organization_id, {})

    def _give(self, signal: Signal) -> bool:
        for waiter in self._waiters(signal.organization_id):
            if (
                not waiter.is_woken
                and waiter.node_id not in signal.tried
                and waiter.accepts(signal.class_id)
            ):
                waiter.wake(signal)
                return True
        return False
