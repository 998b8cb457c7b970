"""The folder of the socket: private, and with a path short enough for one."""

import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote

from umbra_compute.config import ConfigurationError
from umbra_compute.embedded.account import Account
from umbra_compute.embedded.cluster import USER

DATABASE: Final = "postgres"
PORT: Final = 5432  # names the socket's file; nothing listens on TCP

LONGEST: Final = 107
"""Bytes of a socket's path: sun_path of sockaddr_un, less its final NUL (unix(7))."""


def folder(owner: Account, data_dir: Path) -> Path:
    """Return the folder, made if need be, with nobody but its owner (and root) let in.

    Raises ConfigurationError if there is no place for it.
    """
    inside = data_dir / "run"
    if _fits(inside):
        # Nobody else writes to data_dir: what is there is ours.
        inside.mkdir(mode=0o700, exist_ok=True)
        owner.own(inside)
        return inside
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    outside = Path(tempfile.gettempdir()) / f"umbra-{digest}"
    if not _fits(outside):
        raise ConfigurationError(
            f"{data_dir} is too long a path for a socket in it: choose a shorter data_dir."
        )
    # Everybody writes there, and knows the name: what was there before us is looked at, not used
    # or changed on trust. No one can replace it after, for the folder is sticky.
    try:
        outside.mkdir(mode=0o700)
    except FileExistsError:
        found = outside.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), owner.uid):
            raise ConfigurationError(
                f"{outside} belongs to somebody else: choose a shorter data_dir."
            ) from None
    owner.own(outside)
    return outside


def remove(used: Path, data_dir: Path) -> None:
    """Remove a folder that `folder` made outside `data_dir`, once the server has ended."""
    if used.parent != data_dir:
        try:
            used.rmdir()
        except OSError:
            return  # a server that was killed leaves its socket, for the next start to replace


def dsn(used: Path) -> str:
    """Return how to reach the server whose socket is in this folder."""
    return f"postgresql://{USER}@/{DATABASE}?host={quote(str(used), safe='')}&port={PORT}"


def _fits(used: Path) -> bool:
    # The server keeps a lock file beside it, whose path is not limited.
    return len(os.fsencode(used / f".s.PGSQL.{PORT}")) <= LONGEST
