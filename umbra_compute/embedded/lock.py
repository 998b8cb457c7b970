"""One controller per data folder: a lock that ends with the process that holds it."""

import fcntl
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs

from umbra_compute.config import ConfigurationError
from umbra_compute.embedded import account

LOOKING_S: Final = 0.5
"""Who only looks (`holder`) has the lock for an instant; who has it needs one to write its name."""

PASSING_S: Final = 60.0
"""A command that started the server for itself alone is done by then."""

_POLL_S: Final = 0.01


class FolderInUse(ConfigurationError):
    """Another process works in the data folder."""

    def __init__(self, data_dir: Path, name: str) -> None:
        super().__init__(f"{data_dir} is in use by {name}: stop that one first.")


@attrs.frozen
class Holder:
    """Who has a folder. `stays` is False for a command that is done in a moment."""

    name: str
    stays: bool


class FolderLock:
    """Held from construction to `release`.

    Waits for a holder that does not stay. Raises FolderInUse naming who has it, and
    ConfigurationError where the folder is another user's.
    """

    def __init__(self, data_dir: Path, *, stays: bool) -> None:
        path = data_dir / "lock"
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except PermissionError:
            raise account.kept_out(path) from None
        seen, since_s = None, time.monotonic()
        while not _locked(self._fd, fcntl.LOCK_EX):
            found = _written(self._fd)
            if found != seen:  # one after the other has it, or has not written its name yet
                seen, since_s = found, time.monotonic()
            if time.monotonic() - since_s > (LOOKING_S if found.stays else PASSING_S):
                os.close(self._fd)
                raise FolderInUse(data_dir, found.name)
            time.sleep(_POLL_S)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        told = {"name": f"process {os.getpid()} since {since}", "stays": stays}
        os.truncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps(told).encode(), 0)

    def release(self) -> None:
        os.truncate(self._fd, 0)
        os.close(self._fd)


def holder(data_dir: Path) -> Holder | None:
    """Return who has the folder, None if nobody."""
    try:
        fd = os.open(data_dir / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return None
    try:
        return None if _locked(fd, fcntl.LOCK_SH) else _written(fd)
    finally:
        os.close(fd)


def _locked(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _written(fd: int) -> Holder:
    try:
        told = json.loads(os.pread(fd, 4096, 0))
        return Holder(str(told["name"]), stays=bool(told["stays"]))
    except (ValueError, KeyError, TypeError):
        return Holder("another process", stays=True)
