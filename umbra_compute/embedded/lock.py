"""One controller per data folder: a lock that ends with the process that holds it."""

import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from umbra_compute.config import ConfigurationError


class FolderLock:
    """Held from construction to `release`. Raises ConfigurationError naming who has it."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "lock"
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise ConfigurationError(f"{data_dir} is in use {holder(data_dir)}.") from None
        told = {"pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        os.truncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps(told).encode(), 0)

    def release(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def is_held(data_dir: Path) -> bool:
    """Tell whether a process holds the folder's lock."""
    try:
        fd = os.open(data_dir / "lock", os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def holder(data_dir: Path) -> str:
    """Say who holds the lock: "by process 7 since 2026-01-02T03:04:05+00:00"."""
    try:
        told = json.loads((data_dir / "lock").read_text())
        return f"by process {told['pid']} since {told['since']}: stop that one first"
    except (OSError, ValueError, KeyError):
        return "by another process: stop that one first"
