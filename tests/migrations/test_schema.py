"""sql/schema.sql is what the migrations come to."""

import asyncio

from tests.migrations.dump import SCHEMA, dump
from umbra_compute import migrate


async def test_the_dump_is_what_the_migrations_come_to(dsn: str) -> None:
    assert await asyncio.to_thread(dump, dsn) == SCHEMA.read_text(), "run make generate"


def test_the_files_are_numbered_without_a_gap_and_open_with_a_reason() -> None:
    shipped = migrate.shipped()
    assert [one.version for one in shipped] == list(range(1, len(shipped) + 1))
    for one in shipped:
        assert one.sql.startswith("-- "), f"{one.title} does not say why"
