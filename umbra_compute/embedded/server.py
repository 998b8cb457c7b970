"""Starting and stopping the server."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from umbra_compute.config import ConfigurationError
from umbra_compute.embedded import account, cluster, programs, sockets
from umbra_compute.embedded.account import Account
from umbra_compute.embedded.lock import FolderInUse, FolderLock, holder
from umbra_compute.embedded.programs import Programs

START_S: Final = 600.0
"""A recovery replays up to two checkpoints' log (max_wal_size): minutes on a slow disk."""

STOP_S: Final = 30.0
"""The last checkpoint writes at most shared_buffers. Ending without it only costs a recovery."""

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_POLL_S: Final = 0.01


@attrs.define
class Server:
    """A running server. It ends with this process, and with `stop`."""

    dsn: str
    _process: subprocess.Popen[bytes]
    _lock: FolderLock
    _tidy: Callable[[], None]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Disconnect everybody, write everything, end. To be called once."""
        _end(self._process)
        self._tidy()
        self._lock.release()


def start(
    data_dir: Path, *, settings: Mapping[str, str] | None = None, stays: bool = True
) -> Server:
    """Start the server of `data_dir`, making its cluster at the first time.

    Call it from the main thread: the kernel ends the server with the thread that started it.
    `settings` go before those of the cluster, for this start. `stays` False: others may wait for
    this server to end, and do not use it meanwhile.

    Raises ConfigurationError: the wheel is missing, the folder is in use or cannot be used, the
    cluster is of another major version.
    """
    if threading.current_thread() is not threading.main_thread():
        raise AssertionError("the server must be started from the main thread")
    data_dir = data_dir.resolve()
    _make(data_dir)
    lock = FolderLock(data_dir, stays=stays)
    try:
        owner = account.choose(data_dir / "postgres")
        account.check_way(owner, data_dir)
        wheel = programs.installed()
        usable = programs.copied(wheel, data_dir) if owner.drops else wheel
        prepared = cluster.prepared(usable, owner, data_dir)
        cluster.await_predecessor(prepared)
        folder = sockets.folder(owner, data_dir)
        forced = {
            **({} if settings is None else settings),
            "listen_addresses": "",
            "unix_socket_directories": str(folder),
            "port": str(sockets.PORT),
        }
        process = _launched(usable, owner, prepared, forced)
    except BaseException:
        lock.release()
        raise
    return Server(sockets.dsn(folder), process, lock, lambda: sockets.remove(folder, data_dir))


def find_running(data_dir: Path) -> str | None:
    """Return how to reach the server that another process keeps for `data_dir`, if one does.

    Waits while it starts. Raises ConfigurationError if it is another user's.
    """
    data_dir = data_dir.resolve()
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        found = holder(data_dir)
        if found is None or not found.stays:
            return None
        status = cluster.status(data_dir / "postgres")
        if status is not None and status.is_ready:
            return sockets.dsn(status.socket_folder)
        time.sleep(_POLL_S)
    return None


@contextmanager
def database(data_dir: Path) -> Iterator[str]:
    """Yield how to reach the database of `data_dir`: a controller's server, or one for the block.

    Raises ConfigurationError as `start` does.
    """
    running = find_running(data_dir)
    if running is None:
        try:
            server = start(data_dir, stays=False)
        except FolderInUse:  # a controller was quicker
            running = find_running(data_dir)
            if running is None:
                raise
    if running is not None:
        yield running
        return
    try:
        yield server.dsn
    finally:
        server.stop()


def _make(data_dir: Path) -> None:
    try:
        data_dir.mkdir(parents=True)
        # As root another account passes through; what is inside has its own locks.
        data_dir.chmod(0o711 if os.geteuid() == 0 else 0o700)
    except FileExistsError:
        if not data_dir.is_dir():
            raise ConfigurationError(f"{data_dir} is no folder: choose another data_dir.") from None
        if not os.access(data_dir, os.W_OK | os.X_OK):
            raise account.kept_out(data_dir) from None
    except OSError as exc:
        raise ConfigurationError(
            f"The data folder {data_dir} cannot be made: {exc.strerror}; choose another data_dir."
        ) from None


def _launched(
    usable: Programs, owner: Account, prepared: Path, forced: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    first_words = prepared.parent / "start.log"  # until the server has its own log
    with first_words.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603
            [
                usable.path("postgres"),
                *("-D", prepared),
                *(f"--{name}={value}" for name, value in forced.items()),
            ],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            env=cluster.environment(),
            preexec_fn=_end_with_parent(os.getpid()),  # noqa: PLW1509 - two system calls, no more
            start_new_session=True,  # Ctrl-C is for the controller, which stops its server in order
            **owner.popen_arguments(),
        )
    try:
        _await_ready(process, prepared, first_words)
    except BaseException:
        _end(process)
        raise
    return process


def _await_ready(process: subprocess.Popen[bytes], prepared: Path, first_words: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            said = [
                line.partition("FATAL:")[2].strip()
                for line in first_words.read_text(errors="replace").splitlines()
                if "FATAL:" in line
            ]
            reason = f" ({said[-1]})" if said else ""
            raise ConfigurationError(
                f"PostgreSQL ended while it started{reason}: see {first_words} and "
                f"{prepared / 'log'}."
            )
        status = cluster.status(prepared)
        if status is not None and status.pid == process.pid and status.is_ready:
            return
        time.sleep(_POLL_S)
    raise ConfigurationError(
        f"PostgreSQL did not start within {START_S:g} s: see {prepared / 'log'}."
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)  # disconnect everybody, checkpoint, end
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)  # end at once
        process.wait()


def _end_with_parent(parent: int) -> Callable[[], None] | None:
    """Return what the child does before it executes the program, None where there is no way.

    Without it a server outlives a controller that was killed, and the next one refuses to start.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:  # it ended before the call above could know
            os._exit(1)

    return in_child
