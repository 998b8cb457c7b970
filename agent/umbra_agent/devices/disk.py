"""The folder that jobs work in: how much room it has, and whether it can be written to."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PROBE: Final = bytes(64 * 1024)
"""Written and removed again. A few bytes would still fit into a disk that is full for any job."""

_MIB: Final = 1024 * 1024


def free_mb(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free // _MIB
    except OSError:
        return None


def flaw(folder: Path) -> str | None:
    """Return why no job can work in the folder; None: one can (N18)."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
            file.flush()
            os.fsync(file.fileno())
    except OSError as exc:
        return f"work_dir cannot be used: {exc.strerror}"
    return None
