"""One process with all that comes of it: started, fed, read, and ended as a whole."""

import asyncio
import ctypes
import os
import signal
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import attrs

from umbra_agent import log
from umbra_agent.runner import tree

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_CHUNK: Final = 64 * 1024
END_S: Final = 5.0  # killing a whole tree, which may be forking meanwhile
_POLL_S: Final = 0.02


class CannotStart(Exception):
    """The program could not be executed. The message says why."""


class Sink(Protocol):
    def add(self, chunk: bytes) -> None: ...


class _Exits(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells of the exit itself. Process.wait() waits for the pipes too, which a grandchild that
    left its session may hold open for ever."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_CHUNK, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        self.exited.set()
        super().process_exited()


@attrs.define
class Run:
    """A running program. `ended` gives its exit status when it is gone and read to the end."""

    mark: str
    _process: asyncio.subprocess.Process
    _exited: asyncio.Event
    _is_over: bool = False  # its number may be another process group's by now

    async def ended(self, payload: bytes, stdout: Sink, stderr: Sink) -> int:
        """Feed the program, read it to its end, end what it left behind; return its status.

        A negative status is the signal that killed it. A program that cannot be ended (in a
        driver's call, on a disk that is gone) counts as killed: nobody waits for it any more.
        """
        process = self._process
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise AssertionError("the program was started with pipes")
        async with asyncio.TaskGroup() as group:
            feeding = group.create_task(_feed(process.stdin, payload))
            reading = [
                group.create_task(_read(process.stdout, stdout)),
                group.create_task(_read(process.stderr, stderr)),
            ]
            await self._exited.wait()
            # A child of it may hold the pipes open for ever: the job is over with the program.
            self._signal_group(signal.SIGKILL)
            self._is_over = True
            await _end_tree(self.mark)
            feeding.cancel()
            await asyncio.wait(reading, timeout=END_S)
            for task in reading:
                task.cancel()
        return -signal.SIGKILL if process.returncode is None else process.returncode

    async def stop(self, grace_s: float) -> None:
        """End the whole tree: TERM, then KILL after `grace_s`. 0: KILL at once."""
        if grace_s > 0:
            self._signal_group(signal.SIGTERM)
            tree.signal_all(self.mark, signal.SIGTERM, besides=self._process.pid)
            await self._exit_within(grace_s)
        self.kill()
        await _end_tree(self.mark)
        if not await self._exit_within(END_S):
            log.error("process.unkillable", pid=self._process.pid)
            self._exited.set()

    def kill(self) -> None:
        """Kill what can be found, at once and without waiting."""
        self._signal_group(signal.SIGKILL)
        tree.signal_all(self.mark, signal.SIGKILL)

    async def _exit_within(self, limit_s: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._exited.wait()
        return self._exited.is_set()

    def _signal_group(self, number: signal.Signals) -> None:
        if self._is_over:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def _end_tree(mark: str) -> None:
    """Kill every process of the run until none is left. Repeats: they may be forking."""
    deadline = time.monotonic() + END_S
    while tree.signal_all(mark, signal.SIGKILL) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)


async def start(argv: Sequence[str], environment: Mapping[str, str], cwd: Path | None) -> Run:
    """Start a program in a session of its own, to die with this process.

    Call it from the main thread: the kernel ties the program to the thread that forked.
    Raises CannotStart.
    """
    mark = f"{tree.JOB_MARK}={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    loop = asyncio.get_running_loop()
    try:
        transport, exits = await loop.subprocess_exec(
            lambda: _Exits(loop),
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment, name: value},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_die_with(os.getpid()),
        )
    except (OSError, ValueError) as exc:
        raise CannotStart(f"{argv[0]} cannot be started: {exc}") from None
    return Run(mark, asyncio.subprocess.Process(transport, exits, loop), exits.exited)


def _die_with(parent: int) -> Callable[[], None] | None:
    if not hasattr(ctypes.CDLL(None), "prctl"):
        return None  # not Linux: the guardian is not there either
    prctl = ctypes.CDLL(None).prctl

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call above could know
            os._exit(1)

    return in_child


async def _feed(stdin: asyncio.StreamWriter, payload: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it need not read what it is given
        stdin.write(payload)
        await stdin.drain()
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.close()
        await stdin.wait_closed()


async def _read(stream: asyncio.StreamReader, sink: Sink) -> None:
    while chunk := await stream.read(_CHUNK):
        sink.add(chunk)
