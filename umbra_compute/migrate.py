"""The schema: plain SQL files, applied forwards, each once, by one controller at a time.

A released file is never edited: its checksum is stored, and a file that differs is refused.
docs/decisions/0004-migration-runner.md.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
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

LOOK_S: Final = 0.1
"""Between attempts at the lock. A start in company is that much later, at most."""

_NAME: Final = re.compile(r"([0-9]{4})_([a-z0-9_]+)\.sql")
_OUTSIDE: Final = re.compile(r"(?:--.*\n)*-- no-transaction\n")

_BEGIN = """/* migrate.begin */
CREATE TABLE schema_migrations (
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
SELECT pg_try_advisory_xact_lock($1)
"""
# The lock's connection is idle while a file runs, however long that takes.
_STAY = "SET LOCAL idle_in_transaction_session_timeout = 0"
_TAKE_TIME = "SET LOCAL statement_timeout = 0"
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
    def title(self) -> str:
        return f"{self.version:04}_{self.name}"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        """False where the comment at the top ends with the line `-- no-transaction`.

        Such a file is one statement, and may be run again after it was interrupted.
        """
        return _OUTSIDE.match(self.sql) is None


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
    """Apply what is not applied yet, in order, each in its own transaction; return it.

    Controllers that start together apply each file once, also through PgBouncer. A file that
    fails leaves nothing of itself; those before it stay. A schema newer than this release is
    left as it is and only warned of: releases add to it, so that old and new controllers share it
    during an upgrade.

    Raises ConfigurationError if the server is too old, or the schema was made of other files.
    """
    known = shipped() if migrations is None else migrations
    applied: list[Migration] = []
    async with _connected(dsn) as guard, _locked(guard), _connected(dsn) as conn:
        # An account that may only read and write serves a schema that is current.
        if not await conn.fetchval(_EXISTS):
            await conn.execute(_BEGIN)
        stored = await conn.fetch(_APPLIED)
        for migration in missing(known, stored):
            await _apply(conn, migration)
            log.info("migration.applied", version=migration.version, name=migration.name)
            applied.append(migration)
    newest = max(migration.version for migration in known)
    for row in stored:
        if row["version"] > newest:
            log.warning("schema.newer", version=row["version"], name=row["name"], known=newest)
    return applied


async def pending(pool: db.Pool) -> Sequence[str]:
    """Return the names of migrations that are not applied. Raises ConfigurationError."""
    async with pool.acquire() as conn:
        exists = await conn.fetchval(_EXISTS)
        applied = await conn.fetch(_APPLIED) if exists else []
    return [migration.title for migration in missing(shipped(), applied)]


def missing(known: Sequence[Migration], applied: Sequence[asyncpg.Record]) -> list[Migration]:
    """Return what is to be applied, in order.

    Raises ConfigurationError if what was applied is not how this release's schema begins.
    """
    stored = {row["version"]: row for row in applied}
    newest = max((migration.version for migration in known), default=0)
    for version, row in stored.items():
        match = [migration for migration in known if migration.version == version]
        if match and match[0].checksum == row["checksum"]:
            continue
        if match or version < newest:
            raise ConfigurationError(
                f"Migration {version:04}_{row['name']} is not the one that this database was made "
                "with: install the release that made it, or use another database."
            )
    todo = [migration for migration in known if migration.version not in stored]
    if todo and stored and todo[0].version < max(stored):
        raise ConfigurationError(
            f"Migration {todo[0].title} is missing below {max(stored):04}, which is applied: "
            "install the release that made this database, or use another database."
        )
    return todo


@asynccontextmanager
async def _connected(dsn: str) -> AsyncIterator[db.Conn]:
    # No statements are kept prepared: an older PgBouncer would hand them to somebody else.
    conn = await asyncpg.connect(dsn, timeout=db.CONNECT_TIMEOUT_S, statement_cache_size=0)
    try:
        if conn.get_server_version() < (15, 0):
            raise ConfigurationError(
                "The database is older than PostgreSQL 15: upgrade it, or use another one."
            )
        yield conn
    finally:
        await conn.close(timeout=db.CONNECT_TIMEOUT_S)


@asynccontextmanager
async def _locked(guard: db.Conn) -> AsyncIterator[None]:
    """Hold the lock in an open transaction of `guard`, which does nothing else.

    Asked for and not waited for: a statement that waits holds a snapshot, and CREATE INDEX
    CONCURRENTLY, run by the one who has the lock, would wait for that for ever.
    """
    while True:
        async with guard.transaction():
            if await guard.fetchval(_LOCK, LOCK_ID, timeout=db.COMMAND_TIMEOUT_S):
                await guard.execute(_STAY)
                yield
                return
        await asyncio.sleep(LOOK_S)


async def _apply(conn: db.Conn, migration: Migration) -> None:
    note = (_NOTE, migration.version, migration.name, migration.checksum)
    if not migration.in_transaction:
        await conn.execute(migration.sql)
        await conn.execute(*note)
        return
    async with conn.transaction():
        await conn.execute(_TAKE_TIME)
        # First: should the lock have been lost with its connection, two meet here and not inside.
        await conn.execute(*note)
        await conn.execute(migration.sql)
