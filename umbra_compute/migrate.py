"""The schema: plain SQL files, applied forwards, each once, by one controller at a time.

A released file is never edited: its checksum is stored, and a file that differs is refused.
"""

import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final

import asyncpg
import attrs
import structlog

from umbra_compute import db
from umbra_compute.config import ConfigurationError

log = structlog.get_logger(__name__)

LOCK_ID: Final = 0x756D627261  # "umbra": which advisory lock is ours

_NAME: Final = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql")

_BEGIN = """/* migrate.begin */
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT statement_timestamp()
)
"""
_APPLIED = """/* migrate.applied */
SELECT version, name, checksum FROM schema_migrations ORDER BY version
"""
_EXISTS = """/* migrate.exists */
SELECT to_regclass('schema_migrations') IS NOT NULL
"""
_LOCK = """/* migrate.lock */
SELECT pg_advisory_xact_lock($1)
"""
_NOTE = """/* migrate.note */
INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)
"""


@attrs.frozen
class Migration:
    """One file: its number, its name, what it does."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped() -> list[Migration]:
    """Return the migrations that this release knows, in their order."""
    packaged = resources.files("umbra_compute") / "sql" / "migrations"
    checkout = Path(__file__).parents[1] / "sql" / "migrations"
    found: list[Migration] = []
    for entry in (packaged if packaged.is_dir() else checkout).iterdir():
        named = _NAME.fullmatch(entry.name)
        if named is not None:
            text = entry.read_text(encoding="utf-8")
            found.append(Migration(int(named[1]), named[2], text))
    if not found:
        raise AssertionError("the installation holds no migrations")
    return sorted(found, key=lambda migration: migration.version)


async def migrate(dsn: str, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """Apply what is not applied yet; return it. All of it or, after an error, nothing.

    One transaction under one advisory lock, so that controllers that start together apply each
    file once, also through PgBouncer. A schema newer than this release is left as it is: releases
    only add to it, so that old and new controllers share it during an upgrade.

    Raises ConfigurationError if the server is too old or a file differs from what was applied.
    """
    known = shipped() if migrations is None else migrations
    conn = await asyncpg.connect(dsn, timeout=db.CONNECT_TIMEOUT_S)
    try:
        if conn.get_server_version() < (15, 0):
            raise ConfigurationError(
                "The database is older than PostgreSQL 15: upgrade it, or use another one."
            )
        async with conn.transaction():
            await conn.execute(_LOCK, LOCK_ID)
            await conn.execute(_BEGIN)
            missing = _missing(known, await conn.fetch(_APPLIED))
            for migration in missing:
                await conn.execute(migration.sql)
                await conn.execute(_NOTE, migration.version, migration.name, migration.checksum)
    finally:
        await conn.close(timeout=db.CONNECT_TIMEOUT_S)
    for migration in missing:
        log.info("migration.applied", version=migration.version, name=migration.name)
    return missing


async def pending(pool: db.Pool) -> Sequence[str]:
    """Return the names of migrations that are not applied. Raises ConfigurationError."""
    async with pool.acquire() as conn:
        exists = await conn.fetchval(_EXISTS)
        applied = await conn.fetch(_APPLIED) if exists else []
    return [f"{m.version:04}_{m.name}" for m in _missing(shipped(), applied)]


def _missing(known: Sequence[Migration], applied: Sequence[asyncpg.Record]) -> list[Migration]:
    stored = {row["version"]: row["checksum"] for row in applied}
    for migration in known:
        if migration.version in stored and stored[migration.version] != migration.checksum:
            raise ConfigurationError(
                f"Migration {migration.version:04}_{migration.name} is not the one that this "
                "database was made with: install the release that made it, or use another database."
            )
    return [migration for migration in known if migration.version not in stored]
