"""Make sql/schema.sql: what the migrations come to, for people to read.

python -m tests.migrations.dump
"""

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from umbra_compute import embedded, migrate
from umbra_compute.embedded import programs

SCHEMA: Final = Path(__file__).parents[2] / "sql" / "schema.sql"

# Versions of the programs, a random key of each dump, settings that psql needs to load it.
_NOISE: Final = re.compile(r"^(?:-- Dumped .*|\\.*|SET .*|SELECT pg_catalog\.set_config.*)\n", re.M)
_HEADER: Final = "-- Generated from sql/migrations by `make generate`. Not applied by anything.\n\n"


def dump(dsn: str) -> str:
    """Return the schema of a database as text, the same on every machine."""
    told = subprocess.run(
        [
            programs.installed().path("pg_dump"),
            *("--schema-only", "--no-owner", "--no-privileges", "--dbname", dsn),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    body = re.sub(r"\n{3,}", "\n\n", _NOISE.sub("", told)).strip()
    return f"{_HEADER}{body}\n"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="umbra-") as folder:
        Path(folder).chmod(0o711)  # as root the server runs as somebody else
        with embedded.database(Path(folder) / "pg") as dsn:
            asyncio.run(migrate.migrate(dsn))
            SCHEMA.write_text(dump(dsn), encoding="utf-8")


if __name__ == "__main__":
    main()
