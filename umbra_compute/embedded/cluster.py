"""The cluster: PostgreSQL's own folder, and what a server leaves in it."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import attrs

from umbra_compute.config import ConfigurationError
from umbra_compute.embedded import account
from umbra_compute.embedded.account import Account
from umbra_compute.embedded.programs import Programs

USER: Final = "umbra"

SETTINGS: Final = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_truncate_on_rotation": "on",
}
"""Written to postgresql.conf when the cluster is made, for its operator to change after.

What differs from PostgreSQL's defaults: a small machine's memory, fewer checkpoints while a queue
drains, a week of log.
"""

PREDECESSOR_S: Final = 60.0
"""A server whose controller was killed disconnects everybody and writes one checkpoint."""

_POLL_S: Final = 0.01
_STAGING: Final = ".initdb-"
_READY: Final = "ready"


@attrs.frozen
class Status:
    """What postmaster.pid tells of the server that runs, or of one that was killed."""

    pid: int
    socket_folder: Path
    is_ready: bool


def status(cluster: Path) -> Status | None:
    """Return it, None if there is no such file or the server has not written it all yet.

    Raises ConfigurationError if the cluster is another user's.
    """
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    except PermissionError:
        raise account.kept_out(cluster) from None
    try:
        pid, folder, told = lines[0], lines[4], lines[7]
    except IndexError:
        return None
    return Status(int(pid), Path(folder.strip()), told.strip() == _READY)


def prepared(usable: Programs, owner: Account, data_dir: Path) -> Path:
    """Return the cluster's folder, made if there is none.

    Raises ConfigurationError; what is there already is left as it is.
    """
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
    if cluster.exists():
        raise ConfigurationError(f"{cluster} holds no database: move it away and start again.")
    # Beside its place first: an initdb that was interrupted is not taken for a cluster.
    for leftover in data_dir.glob(f"{_STAGING}*"):
        shutil.rmtree(leftover)
    staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=data_dir))
    owner.own(staging)
    made = subprocess.run(  # noqa: S603
        [
            usable.path("initdb"),
            *("-D", staging, "-U", USER, "-E", "UTF8", "--no-instructions"),
            *("--auth-local=trust", "--auth-host=reject"),
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
            *(f"--set={name}={value}" for name, value in SETTINGS.items()),
        ],
        capture_output=True,
        cwd="/",
        env=environment(),
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


def await_predecessor(cluster: Path) -> None:
    """Wait for the server of a controller that was killed: it is shutting down by itself.

    The caller holds the folder's lock. Raises ConfigurationError if that server stays.
    """
    deadline = time.monotonic() + PREDECESSOR_S
    while working := _working_in(cluster):
        if time.monotonic() > deadline:
            raise ConfigurationError(
                f"Another PostgreSQL (process {working[0]}) still runs in {cluster}: stop it first."
            )
        time.sleep(_POLL_S)
    left = status(cluster)
    # A machine or container that starts again gives the same numbers to others. PostgreSQL would
    # take that process for its predecessor; we have just seen that it is none.
    if left is not None and Path(f"/proc/{left.pid}").exists():
        (cluster / "postmaster.pid").unlink()


def _working_in(cluster: Path) -> list[int]:
    """Return the processes of PostgreSQL in this cluster: each has it as its working folder.

    Empty where there is no /proc: PostgreSQL itself then refuses to be the second one.
    """
    left = status(cluster)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() != "postgres":
                continue
            inside = (entry / "cwd").samefile(cluster)
        except PermissionError:  # root without the right to look: as in most containers
            inside = left is not None and int(entry.name) == left.pid
        except OSError:  # it ended meanwhile
            continue
        if inside:
            found.append(int(entry.name))
    return sorted(found)


def environment() -> dict[str, str]:
    """Nothing of ours: no key, and no PG* variable that would change what is meant."""
    return {"LC_ALL": "C", "PATH": os.defpath, "TZ": "UTC"}
