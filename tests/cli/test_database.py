"""Commands of whoever operates the database: no controller, no key."""

import json
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.cli.process import umbra
from umbra_compute import migrate
from umbra_compute.db import Pool


async def test_the_first_organization_gets_a_key_that_may_do_everything(empty_dsn: str) -> None:
    ran = await umbra("init", "--org", "acme", "--json", env={"UMBRA_DSN": empty_dsn})
    told = json.loads(ran.out)
    assert (ran.code, ran.err, set(told)) == (0, "", {"organization_id", "api_key"})
    conn = await asyncpg.connect(empty_dsn)
    [row] = await conn.fetch("SELECT organization_id, key_prefix, scopes FROM api_keys")
    await conn.close()
    assert str(row["organization_id"]) == told["organization_id"]
    assert told["api_key"].startswith(row["key_prefix"])
    assert row["scopes"] == ["admin"]


async def test_a_second_start_under_the_same_name_makes_nothing(dsn: str, pool: Pool) -> None:
    assert (await umbra("init", "--org", "acme", "--dsn", dsn)).code == 0
    ran = await umbra("init", "--org", "acme", "--dsn", dsn)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "An organization named acme exists already: choose another name.\n"
    assert await pool.fetchval("SELECT count(*) FROM api_keys") == 1


async def test_the_schema_is_looked_at_without_changing_it(empty_dsn: str) -> None:
    names = [f"{one.version:04}_{one.name}" for one in migrate.shipped()]
    ran = await umbra("migrate", "--check", "--json", "--dsn", empty_dsn)
    assert (ran.code, json.loads(ran.out)) == (1, {"pending": names})
    assert ran.err == "The schema is not up to date: run umbra-compute migrate.\n"
    conn = await asyncpg.connect(empty_dsn)
    tables = await conn.fetch("SELECT FROM pg_tables WHERE schemaname = 'public'")
    await conn.close()
    assert tables == []


async def test_the_schema_is_brought_up_to_date_once(empty_dsn: str) -> None:
    names = [f"{one.version:04}_{one.name}" for one in migrate.shipped()]
    for applied in (names, []):
        ran = await umbra("migrate", "--json", "--dsn", empty_dsn)
        assert (ran.code, json.loads(ran.out)) == (0, {"applied": applied})
    assert (await umbra("migrate", "--check", "--dsn", empty_dsn)).code == 0


async def test_organizations_are_added_and_listed(dsn: str) -> None:
    made = [
        json.loads((await umbra("org", "add", name, "--json", "--dsn", dsn)).out)
        for name in ("zoo", "acme")
    ]
    listed = await umbra("org", "list", "--json", "--dsn", dsn)
    assert json.loads(listed.out) == {"organizations": [made[1], made[0]]}
    shown = (await umbra("org", "list", "--dsn", dsn)).out.splitlines()
    assert shown == ["NAME\tID", f"acme\t{made[1]['id']}", f"zoo\t{made[0]['id']}"]


@pytest.mark.parametrize("name", ["", "n" * 201, "two\nlines"])
async def test_a_name_that_cannot_be_one_is_not_stored(dsn: str, pool: Pool, name: str) -> None:
    for argv in (("org", "add", name), ("init", "--org", name)):
        assert (await umbra(*argv, "--dsn", dsn)).code == 2
    assert await pool.fetchval("SELECT count(*) FROM organizations") == 0


async def test_a_key_for_an_organization_needs_no_key(dsn: str, pool: Pool) -> None:
    await umbra("org", "add", "acme", "--dsn", dsn)
    asked = ("key", "add", "--name", "ci", "--scopes", "jobs:read,jobs:write", "--dsn", dsn)
    ran = await umbra(*asked, "--org", "acme", "--expires-in-s", "60", "--json")
    told = json.loads(ran.out)
    row = await pool.fetchrow("SELECT *, expires_at - created_at AS lives FROM api_keys")
    assert row is not None
    assert (str(row["id"]), row["name"], row["scopes"]) == (
        *(told["id"], "ci", ["jobs:read", "jobs:write"]),
    )
    assert row["lives"].total_seconds() == 60
    nobody = await umbra(*asked, "--org", "nobody")
    assert (nobody.code, nobody.out) == (1, "")
    assert nobody.err == "There is no organization nobody: umbra-compute org list shows them.\n"


COMMANDS = [
    ("init", "--org", "acme"),
    ("migrate",),
    ("org", "list"),
    ("key", "add", "--name", "ci", "--scopes", "jobs:read", "--org", "acme"),
]


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
async def test_a_database_that_is_away_is_not_reachable(argv: tuple[str, ...]) -> None:
    ran = await umbra(*argv, "--dsn", "postgresql://umbra@127.0.0.1:1/umbra")
    assert (ran.code, ran.out) == (5, "")
    assert ran.err.startswith("The database cannot be reached (")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
async def test_a_dsn_that_is_none_is_a_matter_of_configuration(argv: tuple[str, ...]) -> None:
    ran = await umbra(*argv, "--dsn", "mysql://umbra:hunter2@127.0.0.1/umbra")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.count("\n") == 1
    assert "hunter2" not in ran.err


async def test_a_database_without_a_schema_says_what_to_do(empty_dsn: str) -> None:
    ran = await umbra("org", "list", "--dsn", empty_dsn)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "The database has no schema yet: run umbra-compute migrate.\n"


async def test_without_a_dsn_the_controllers_own_database_is_used(scratch: Path) -> None:
    env = {"UMBRA_DATA_DIR": str(scratch / "cli")}
    assert (await umbra("init", "--org", "acme", env=env)).code == 0
    ran = await umbra("org", "list", env=env)
    assert (ran.code, ran.err) == (0, "")
    assert "acme" in ran.out


def elsewhere(dsn: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path="/no_such_database"))


async def test_a_database_that_is_not_there_is_not_reachable(dsn: str) -> None:
    ran = await umbra("migrate", "--dsn", elsewhere(dsn))
    assert (ran.code, ran.out) == (5, "")
    assert "no_such_database" in ran.err
