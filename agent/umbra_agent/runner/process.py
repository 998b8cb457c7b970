"""One process with all that comes of it: started, fed, read, and ended as a whole."""

import asyncio
import ctypes
import os
import signal
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import attrs

from umbra_agent.runner import tree

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_CHUNK: Final = 64 * 1024
END_S: Final = 5.0  # killing a whole tree, which may be forking meanwhile


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

    async def ended(self, payload: bytes, stdout: Sink, stderr: Sink) -> int:
        """Feed the program, read it to its end, end what it left behind; return its status.

        A negative status is the signal that killed it.
        """
        process = self._process
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise AssertionError("the program was started with pipes")
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process.stdin, payload))
            reading = [
                group.create_task(_read(process.stdout, stdout)),
                group.create_task(_read(process.stderr, stderr)),
            ]
            await self._exited.wait()
            # A child of it may hold the pipes open for ever: the job is over with the program.
            await tree.end(self.mark, END_S)
            await asyncio.wait(reading, timeout=END_S)
            for task in reading:
                task.cancel()
        if process.returncode is None:
            raise AssertionError("a process that exited has a status")
        return process.returncode

    async def stop(self, grace_s: float) -> None:
        """End the whole tree: TERM, then KILL after `grace_s`. 0: KILL at once."""
        if grace_s > 0:
            tree.signal_all(self.mark, signal.SIGTERM)
            self._signal_group(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._exited.wait()
        self.kill()
        await tree.end(self.mark, END_S)

    def kill(self) -> None:
        """Kill what can be found, at once and without waiting."""
        self._signal_group(signal.SIGKILL)
        tree.signal_all(self.mark, signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


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
