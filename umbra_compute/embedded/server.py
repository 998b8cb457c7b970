"""Starting and stopping the server."""

import ctypes
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import attrs

from umbra_compute.config import ConfigurationError
from umbra_compute.embedded import account, programs
from umbra_compute.embedded.account import Account
from umbra_compute.embedded.lock import FolderLock, is_held
from umbra_compute.embedded.programs import Programs

USER: Final = "umbra"
DATABASE: Final = "postgres"
PORT: Final = 5432  # names the socket's file; nothing listens on TCP

LONGEST_SOCKET: Final = 107  # bytes: sun_path of sockaddr_un, less its final NUL
START_S: Final = 120.0  # a crash recovery replays at most a few checkpoints' worth of log
STOP_S: Final = 30.0
PREDECESSOR_S: Final = 60.0  # a server whose controller was killed is finishing its shutdown

SETTINGS: Final = {
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_truncate_on_rotation": "on",
}
"""What differs from PostgreSQL's defaults: no network, a small machine's memory, a week of log."""

_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_READY: Final = "ready"  # eighth line of postmaster.pid
_POLL_S: Final = 0.01


@attrs.define
class Server:
    """A running server. It ends with this process, and with `stop`."""

    dsn: str
    _process: subprocess.Popen[bytes]
    _lock: FolderLock

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Disconnect everybody, write everything, end."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        self._lock.release()


def start(data_dir: Path, *, settings: Mapping[str, str] | None = None) -> Server:
    """Start the server of `data_dir`, making its cluster at the first time.

    Call it from the main thread: the kernel ends the server with the thread that started it.
    `settings` add to SETTINGS for this start.

    Raises ConfigurationError: the wheel is missing, the folder is in use or cannot be used, the
    cluster is of another major version.
    """
    if threading.current_thread() is not threading.main_thread():
        raise AssertionError("the server must be started from the main thread")
    _make(data_dir)
    lock = FolderLock(data_dir)
    try:
        owner = account.choose(data_dir / "postgres")
        account.check_way(owner, data_dir)
        wheel = programs.installed()
        usable = programs.copied(wheel, data_dir) if owner.drops else wheel
        cluster = _prepared(usable, owner, data_dir)
        folder = _socket_folder(owner, data_dir)
        process = _launched(usable, owner, cluster, folder, settings)
    except BaseException:
        lock.release()
        raise
    return Server(_dsn(folder), process, lock)


def find_running(data_dir: Path) -> str | None:
    """Return how to reach the server that another process runs for `data_dir`, if one does."""
    if not is_held(data_dir):
        return None
    deadline = time.monotonic() + START_S
    while is_held(data_dir) and time.monotonic() < deadline:
        status = _pid_file(data_dir / "postgres")
        if len(status) > 7 and status[7].strip() == _READY:  # noqa: PLR2004
            return _dsn(Path(status[4].strip()))
        time.sleep(_POLL_S)
    return None


@contextmanager
def database(data_dir: Path) -> Iterator[str]:
    """Yield how to reach the database of `data_dir`: the running server's, or one for the block.

    Raises ConfigurationError as `start` does.
    """
    running = find_running(data_dir)
    if running is not None:
        yield running
        return
    server = start(data_dir)
    try:
        yield server.dsn
    finally:
        server.stop()


def _make(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o711, parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigurationError(
            f"The data folder {data_dir} cannot be made: {exc.strerror}; choose another data_dir."
        ) from None
    if not os.access(data_dir, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"The data folder {data_dir} cannot be written to: choose another data_dir."
        )


def _prepared(usable: Programs, owner: Account, data_dir: Path) -> Path:
    """Return the cluster's folder, made if there is none."""
    cluster = data_dir / "postgres"
    version = cluster / "PG_VERSION"
    if version.exists():
        found = version.read_text().strip()
        if found != usable.major:
            raise ConfigurationError(
                f"{cluster} was written by PostgreSQL {found} and this is {usable.major}: dump it "
                f"with pg_dumpall of {found}, move the folder away, start, and restore the dump."
            )
        return cluster
    # Beside its place first: an initdb that was interrupted is not taken for a cluster.
    for leftover in data_dir.glob(".initdb-*"):
        shutil.rmtree(leftover)
    staging = Path(tempfile.mkdtemp(prefix=".initdb-", dir=data_dir))
    owner.own(staging)
    made = subprocess.run(  # noqa: S603
        [
            usable.path("initdb"),
            *("-D", staging, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-instructions"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
        ],
        capture_output=True,
        cwd="/",
        env=_environment(),
        check=False,
        **owner.popen_arguments(),
    )
    if made.returncode != 0:
        said = made.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigurationError(
            f"The database could not be made in {data_dir}: {said[-1] if said else 'no reason'}."
        )
    staging.rename(cluster)
    return cluster


def _socket_folder(owner: Account, data_dir: Path) -> Path:
    """Return a private folder for the socket, whose path is short enough for one."""
    folder = data_dir / "run"
    if len(os.fsencode(folder / f".s.PGSQL.{PORT}")) > LONGEST_SOCKET:
        digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"umbra-{digest}"
        if folder.is_symlink() or (folder.exists() and folder.stat().st_uid != owner.uid):
            raise ConfigurationError(
                f"{folder} belongs to somebody else: choose a shorter data_dir."
            )
    owner.own(folder)
    return folder


def _launched(
    usable: Programs,
    owner: Account,
    cluster: Path,
    folder: Path,
    settings: Mapping[str, str] | None,
) -> subprocess.Popen[bytes]:
    _await_predecessor(cluster)
    chosen = {
        **SETTINGS,
        "unix_socket_directories": str(folder),
        "port": str(PORT),
        **({} if settings is None else settings),
    }
    options = [f"--{name}={value}" for name, value in chosen.items()]
    process = subprocess.Popen(  # noqa: S603
        [usable.path("postgres"), "-D", cluster, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=_environment(),
        preexec_fn=_end_with_parent(os.getpid()),  # noqa: PLW1509 - it only makes two system calls
        start_new_session=True,  # Ctrl-C is for the controller, which stops its server in order
        **owner.popen_arguments(),
    )
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ConfigurationError(
                f"PostgreSQL ended while it started: its log is in {cluster / 'log'}."
            )
        status = _pid_file(cluster)
        mine = bool(status) and status[0].strip() == str(process.pid)
        if mine and len(status) > 7 and status[7].strip() == _READY:  # noqa: PLR2004
            return process
        time.sleep(_POLL_S)
    process.send_signal(signal.SIGQUIT)
    process.wait()
    raise ConfigurationError(
        f"PostgreSQL did not start within {START_S:g} s: its log is in {cluster / 'log'}."
    )


def _await_predecessor(cluster: Path) -> None:
    """Wait for the server of a controller that was killed: it is shutting down by itself."""
    deadline = time.monotonic() + PREDECESSOR_S
    while time.monotonic() < deadline:
        status = _pid_file(cluster)
        if not status or not _is_postgres(status[0].strip()):
            return
        time.sleep(_POLL_S)
    raise ConfigurationError(
        f"Another PostgreSQL (process {status[0].strip()}) still runs in {cluster}: stop it first."
    )


def _is_postgres(pid: str) -> bool:
    try:
        return Path(f"/proc/{int(pid)}/comm").read_text().strip() == "postgres"
    except (OSError, ValueError):
        return False


def _end_with_parent(parent: int) -> Callable[[], None]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:  # it ended before the call above could know
            os._exit(1)

    return in_child


def _pid_file(cluster: Path) -> list[str]:
    try:
        return (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def _environment() -> dict[str, str]:
    """Nothing of ours: no key, and no PG* variable that would change what is meant."""
    return {"LC_ALL": "C", "PATH": os.defpath, "TZ": "UTC"}


def _dsn(folder: Path) -> str:
    return f"postgresql://{USER}@/{DATABASE}?host={quote(str(folder), safe='')}&port={PORT}"
