"""Migrations are applied in order, each once, whoever else is starting, and whatever fails."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest
from structlog.testing import capture_logs

from tests.conftest import named
from umbra_compute import db, migrate
from umbra_compute.config import ConfigurationError
from umbra_compute.migrate import Migration

FIRST = Migration(1, "first", "CREATE TABLE one (id integer PRIMARY KEY);")
SECOND = Migration(2, "second", "INSERT INTO one VALUES (1);\nCREATE TABLE two (id integer);")
BROKEN = Migration(3, "broken", "CREATE TABLE three (id integer);\nSELECT 1 / 0;")
OUTSIDE = Migration(
    3,
    "index",
    "-- The table is large: nobody waits for its index.\n-- no-transaction\n"
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS two_id ON two (id);",
)


@pytest.fixture
async def conn(empty_dsn: str) -> AsyncIterator[db.Conn]:
    conn = await asyncpg.connect(empty_dsn)
    yield conn
    await conn.close()


async def stored(conn: db.Conn) -> list[tuple[int, str]]:
    rows = await conn.fetch("SELECT version, name FROM schema_migrations ORDER BY version")
    return [(row["version"], row["name"]) for row in rows]


async def exists(conn: db.Conn, relation: str) -> bool:
    return await conn.fetchval("SELECT to_regclass($1)", relation) is not None


async def test_files_are_applied_in_order_and_once(empty_dsn: str, conn: db.Conn) -> None:
    assert await migrate.migrate(empty_dsn, [FIRST]) == [FIRST]
    assert await migrate.migrate(empty_dsn, [FIRST, SECOND]) == [SECOND]
    assert await migrate.migrate(empty_dsn, [FIRST, SECOND]) == []
    assert await stored(conn) == [(1, "first"), (2, "second")]
    assert await conn.fetchval("SELECT count(*) FROM one") == 1


@pytest.mark.parametrize("known", [[FIRST, SECOND], [FIRST, SECOND, OUTSIDE]])
async def test_controllers_that_start_together_apply_each_file_once(
    empty_dsn: str, conn: db.Conn, known: list[Migration]
) -> None:
    barrier = asyncio.Barrier(8)

    async def controller() -> list[Migration]:
        await barrier.wait()
        return await migrate.migrate(empty_dsn, known)

    async with asyncio.timeout(30):
        applied = await asyncio.gather(*(controller() for _ in range(8)))
    assert sorted(map(len, applied)) == [0] * 7 + [len(known)]
    assert await stored(conn) == [(one.version, one.name) for one in known]


async def test_a_file_that_fails_leaves_nothing_of_itself(empty_dsn: str, conn: db.Conn) -> None:
    with capture_logs() as logged, pytest.raises(asyncpg.DivisionByZeroError):
        await migrate.migrate(empty_dsn, [FIRST, SECOND, BROKEN])
    assert await stored(conn) == [(1, "first"), (2, "second")]
    assert not await exists(conn, "three")
    applied = [line["version"] for line in logged if line["event"] == "migration.applied"]
    assert applied == [1, 2]
    mended = Migration(3, "broken", "CREATE TABLE three (id integer);")
    assert await migrate.migrate(empty_dsn, [FIRST, SECOND, mended]) == [mended]


async def test_an_index_is_built_while_the_table_is_written_to(
    empty_dsn: str, conn: db.Conn
) -> None:
    await migrate.migrate(empty_dsn, [FIRST, SECOND])
    writer = conn.transaction()
    await writer.start()
    await conn.execute("INSERT INTO two VALUES (1)")
    applying = asyncio.create_task(migrate.migrate(empty_dsn, [FIRST, SECOND, OUTSIDE]))
    other = await asyncpg.connect(empty_dsn)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'virtualxid'"
    async with asyncio.timeout(10):
        while not await other.fetchval(waiting):
            pass
        await other.execute("INSERT INTO two VALUES (2)")  # a plain CREATE INDEX would hold it up
        await writer.commit()
        assert await applying == [OUTSIDE]
    await other.close()
    assert await conn.fetchval(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'two_id'::regclass"
    )


async def test_a_file_that_was_edited_after_its_release_is_named(
    empty_dsn: str, conn: db.Conn
) -> None:
    await migrate.migrate(empty_dsn, [FIRST])
    edited = Migration(1, "first", FIRST.sql + " ")
    with pytest.raises(ConfigurationError, match="Migration 0001_first is not the one"):
        await migrate.migrate(empty_dsn, [edited, SECOND])
    assert await stored(conn) == [(1, "first")]


async def test_a_newer_schema_is_left_alone_and_warned_of(empty_dsn: str) -> None:
    await migrate.migrate(empty_dsn, [FIRST, SECOND])
    with capture_logs() as logged:
        assert await migrate.migrate(empty_dsn, [FIRST]) == []
    assert [(line["event"], line["version"]) for line in logged] == [("schema.newer", 2)]


async def test_a_schema_of_other_files_is_refused(empty_dsn: str, conn: db.Conn) -> None:
    await migrate.migrate(empty_dsn, [FIRST, SECOND])
    third = Migration(3, "third", "CREATE TABLE three (id integer);")
    with pytest.raises(ConfigurationError, match="0002_second is not the one"):
        await migrate.migrate(empty_dsn, [FIRST, third])
    await conn.execute("DELETE FROM schema_migrations WHERE version = 1")
    with pytest.raises(ConfigurationError, match="0001_first is missing below 0002"):
        await migrate.migrate(empty_dsn, [FIRST, SECOND, third])
    assert not await exists(conn, "three")


async def test_an_account_that_may_not_create_serves_a_current_schema(
    empty_dsn: str, conn: db.Conn
) -> None:
    await migrate.migrate(empty_dsn, [FIRST])
    role = f"reader_{uuid4().hex[:8]}"
    await conn.execute(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON schema_migrations TO {role}")
    try:
        limited = empty_dsn.replace("umbra@", f"{role}@", 1)
        assert await migrate.migrate(limited, [FIRST]) == []
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await migrate.migrate(limited, [FIRST, SECOND])
    finally:
        await conn.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_what_is_pending_is_named(empty_dsn: str, pool: db.Pool) -> None:
    assert await migrate.pending(pool) == []
    async with asyncpg.create_pool(empty_dsn, min_size=0, max_size=1) as empty:
        assert list(await migrate.pending(empty)) == [one.title for one in migrate.shipped()]
    await pool.execute("UPDATE schema_migrations SET checksum = 'other' WHERE version = 1")
    with pytest.raises(ConfigurationError, match="0001_"):
        await migrate.pending(pool)


async def test_a_dead_owner_of_the_lock_holds_nobody_up(empty_dsn: str, conn: db.Conn) -> None:
    holding = await asyncpg.connect(empty_dsn)
    await holding.execute(f"BEGIN; SELECT pg_advisory_xact_lock({migrate.LOCK_ID})")
    waiting = asyncio.create_task(migrate.migrate(empty_dsn, [FIRST]))
    tried = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory%'"
    async with asyncio.timeout(10):
        while await conn.fetchval(f"{tried} AND pid <> pg_backend_pid()") == 0:
            pass
        assert not await exists(conn, "one")
        holding.terminate()
        assert await waiting == [FIRST]


async def test_a_lost_lock_does_not_apply_a_file_twice(empty_dsn: str, conn: db.Conn) -> None:
    await migrate.migrate(empty_dsn, [FIRST])
    other = conn.transaction()
    await other.start()  # a runner that lost its guard, in the middle of the second file
    await conn.execute(migrate._NOTE, 2, SECOND.name, SECOND.checksum)
    await conn.execute(SECOND.sql)
    applying = asyncio.create_task(migrate.migrate(empty_dsn, [FIRST, SECOND]))
    watching = await asyncpg.connect(empty_dsn)
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
    async with asyncio.timeout(10):
        while not await watching.fetchval(blocked):
            pass
        await other.commit()
        with pytest.raises(asyncpg.UniqueViolationError) as refused:
            await applying
    assert refused.value.table_name == "schema_migrations"  # before any of the file was run
    await watching.close()
    assert await conn.fetchval("SELECT count(*) FROM one") == 1


async def test_a_database_that_is_not_there_is_the_drivers_error(server_dsn: str) -> None:
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await migrate.migrate(named(server_dsn, "no_such_database"))
