"""A shell on a database to develop with: that of .dev, where `serve --data-dir .dev` keeps it too.

python -m tests.development
"""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from umbra_compute import embedded, migrate
from umbra_compute.embedded import programs

DATA_DIR: Final = Path(__file__).parents[1] / ".dev"


def main() -> int:
    with embedded.database(DATA_DIR) as dsn:
        asyncio.run(migrate.migrate(dsn))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the shell, which ends a query by it
        shell = [str(programs.installed().path("psql")), "--no-psqlrc", dsn]
        return subprocess.run(shell, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
