"""The account that the server runs as: ours, but never root, which PostgreSQL refuses."""

import os
import pwd
import stat
from pathlib import Path
from typing import Any, Final

import attrs

from umbra_compute.config import ConfigurationError

PREFERRED: Final = ("umbra-compute", "nobody")
"""As root, in this order, if the cluster does not belong to somebody already."""


@attrs.frozen
class Account:
    """Who the server runs as. `drops` is False where that is who we are."""

    uid: int
    gid: int
    drops: bool

    def popen_arguments(self) -> dict[str, Any]:
        """Groups, group and user are set in the child, before it executes the program."""
        if not self.drops:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Make the folder this account's alone."""
        if self.drops:
            os.chown(folder, self.uid, self.gid, follow_symlinks=False)
        folder.chmod(0o700)


def choose(cluster: Path) -> Account:
    """Return the account for this cluster, which may not exist yet."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), drops=False)
    if cluster.exists() and cluster.stat().st_uid != 0:
        owner = cluster.stat()
        return Account(owner.st_uid, owner.st_gid, drops=True)
    for name in PREFERRED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, drops=True)
    raise ConfigurationError(
        "As root the database needs another account to run as: add the user umbra-compute, "
        "or set UMBRA_DSN."
    )


def check_way(account: Account, data_dir: Path) -> None:
    """Raise ConfigurationError if the account cannot enter a folder above `data_dir`.

    Nothing is opened to others for it: whose folder that is decides.
    """
    if not account.drops:
        return
    for folder in (*reversed(data_dir.parents), data_dir):
        found = folder.stat()
        if found.st_uid == account.uid:
            bit = stat.S_IXUSR
        elif found.st_gid == account.gid:
            bit = stat.S_IXGRP
        else:
            bit = stat.S_IXOTH
        if not found.st_mode & bit:
            raise ConfigurationError(
                f"As root the database runs as {_name(account.uid)}, who cannot enter {folder}: "
                f"allow it (chmod o+x {folder}), or choose another data_dir."
            )


def kept_out(path: Path) -> ConfigurationError:
    """Return the sentence for a file or folder that we may not use as we need to."""
    found = path.stat()
    return ConfigurationError(
        f"{path} (of {_name(found.st_uid)}, mode {stat.S_IMODE(found.st_mode):04o}) keeps "
        f"{_name(os.geteuid())} out: run this as its owner, or choose another data_dir."
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
