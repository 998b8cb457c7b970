"""The doctor finds what is wrong, says what to do, and tells it from what it cannot see."""

import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aiohttp import web

from tests.cli.process import Ran, umbra
from tests.client.stub import KEY, Stub, refuses, says, text
from tests.http.conftest import Caller, Keys
from tests.world import World
from umbra_compute.cli import doctor
from umbra_compute.db import Pool
from umbra_compute.http import context
from umbra_compute.model.caller import ApiScope
from umbra_compute.ops import health

NOBODY = "http://127.0.0.1:1"


def seen(ran: Ran) -> dict[str, tuple[bool | None, str]]:
    return {one["what"]: (one["ok"], one["told"]) for one in json.loads(ran.out)["findings"]}


async def examine(env: dict[str, str], *argv: str) -> tuple[int, dict[str, Any]]:
    ran = await umbra("doctor", "--json", *argv, env=env)
    return ran.code, seen(ran)


@pytest.fixture
async def swept(pool: Pool) -> None:
    await pool.execute("INSERT INTO sweep_rounds (name, succeeded_at) VALUES ('expire', now())")


@pytest.mark.usefixtures("swept")
async def test_all_is_well(
    real: dict[str, str], admin: Caller, app: web.Application, dsn: str
) -> None:
    world = World(app[context.POOL], admin.organization_id)
    await world.node("desk")
    await world.submit()
    code, findings = await examine({**real, "UMBRA_DSN": dsn})
    assert {what: ok for what, (ok, _) in findings.items()} == dict.fromkeys(
        [
            *("settings", "controller", "readiness", "key", "queue", "nodes", "schema"),
            *("postgresql", "sweeps", "horizon", "jobs"),
        ],
        True,
    )
    assert code == 0
    assert findings["nodes"][1] == "1 online"
    assert findings["queue"][1] == "1 waiting, 0 later, 0 running"


@pytest.mark.usefixtures("swept")
async def test_people_get_a_line_each_and_a_last_sentence(real: dict[str, str], dsn: str) -> None:
    ran = await umbra("doctor", env={**real, "UMBRA_DSN": dsn})
    lines = {line[7:20].strip(): line for line in ran.out.splitlines()}
    assert lines["schema"] == "ok     schema       current"
    assert lines["nodes"].startswith("WRONG  nodes        none: umbra-compute node add NAME")
    assert (ran.code, ran.err) == (1, "Something is wrong with: nodes.\n")


async def test_nobody_there_is_one_wrong_line(tmp_path: Path) -> None:
    env = {"UMBRA_URL": NOBODY, "UMBRA_API_KEY": KEY, "UMBRA_DATA_DIR": str(tmp_path / "none")}
    code, findings = await examine(env)
    assert code == 1
    assert set(findings) == {"settings", "controller", "database"}
    assert "does not answer (Connection refused): is it running" in findings["controller"][1]
    assert findings["database"][0] is None
    assert not (tmp_path / "none").exists()


async def test_a_database_that_is_away_does_not_hide_the_rest(real: dict[str, str]) -> None:
    code, findings = await examine({**real, "UMBRA_DSN": "postgresql://127.0.0.1:1/x"})
    assert code == 1
    assert findings["key"] == (True, "accepted")
    assert findings["database"][1].startswith("The database cannot be reached (")


async def test_no_key_is_not_looked_at_further(tmp_path: Path) -> None:
    code, findings = await examine({"UMBRA_DATA_DIR": str(tmp_path)})
    assert (code, findings["key"][0]) == (0, None)


async def test_a_wrong_setting_is_the_finding(tmp_path: Path) -> None:
    config = tmp_path / "umbra.toml"
    config.write_text("lisen = 1\n")
    code, findings = await examine(
        {"UMBRA_API_KEY": KEY, "UMBRA_URL": NOBODY}, f"--config={config}"
    )
    assert code == 1
    assert "the nearest is 'listen'" in findings["settings"][1]


async def test_a_bad_key_is_told_from_one_for_something_else(
    real: dict[str, str], keys: Keys, admin: Caller, tmp_path: Path
) -> None:
    own = {"UMBRA_DATA_DIR": str(tmp_path)}
    code, findings = await examine({**real, **own, "UMBRA_API_KEY": KEY})
    assert code == 1
    assert findings["key"][0] is False
    assert "nodes" not in findings
    narrow = await keys.api(admin.organization_id, ApiScope.NODES_READ)
    _, findings = await examine({**real, **own, "UMBRA_API_KEY": narrow.key})
    assert findings["key"] == (True, "accepted")
    assert findings["queue"][0] is None
    assert "jobs:read" in findings["queue"][1]


async def test_a_controller_that_is_not_ready_says_why(
    stub: Stub, caller: dict[str, str], tmp_path: Path
) -> None:
    told = refuses(503, "schema_not_current", "1 migrations are to be applied.")
    stub.will(says({"status": "ok"}), *[told] * 9)
    code, findings = await examine({**caller, "UMBRA_DATA_DIR": str(tmp_path)})
    assert (code, findings["controller"]) == (1, (True, "reachable"))
    assert findings["readiness"] == (False, "1 migrations are to be applied.")


async def test_what_is_no_controller_is_said(
    stub: Stub, caller: dict[str, str], tmp_path: Path
) -> None:
    stub.will(*[text("<html>")] * 9)
    _, findings = await examine({**caller, "UMBRA_DATA_DIR": str(tmp_path)})
    assert "no controller: check the address" in findings["controller"][1]


async def test_silent_and_blocked_are_named(
    real: dict[str, str], admin: Caller, app: web.Application, tmp_path: Path
) -> None:
    pool = app[context.POOL]
    world = World(pool, admin.organization_id)
    await world.node("attic", status="offline")
    await world.submit()
    await pool.execute(
        "UPDATE requirement_classes SET blocked_at = now(), blocked_reason = 'too big',"
        " blocked_verdicts = '[]'"
    )
    _, findings = await examine({**real, "UMBRA_DATA_DIR": str(tmp_path)})
    assert findings["queue"] == (False, "0 waiting, 0 later, 0 running, 1 blocked: too big")
    assert findings["nodes"][0] is False
    assert findings["nodes"][1].startswith("1 offline (attic was heard ")


async def test_an_empty_database_is_told_to_be_migrated(empty_dsn: str) -> None:
    code, findings = await examine({"UMBRA_DSN": empty_dsn})
    assert code == 1
    assert "umbra-compute migrate" in findings["database"][1]


async def test_no_sweep_means_no_controller(dsn: str) -> None:
    _, findings = await examine({"UMBRA_DSN": dsn})
    assert findings["sweeps"][0] is False
    assert "umbra-compute serve" in findings["sweeps"][1]


async def test_the_session_that_holds_the_horizon_is_named(dsn: str, pool: Pool) -> None:
    holder = await asyncpg.connect(dsn, server_settings={"application_name": "a report"})
    try:
        async with holder.transaction(isolation="repeatable_read"):
            await holder.fetch("SELECT count(*) FROM jobs")
            held = (await health.examine(pool))["horizon"]
            assert held["pid"] == holder.get_server_pid()
            _, findings = await examine({"UMBRA_DSN": dsn})
    finally:
        await holder.close()
    ok, told = findings["horizon"]
    assert ok is True
    assert f"session a report (process {held['pid']}, idle in transaction)" in told


OLD = {"holder": "session", "pid": 7, "application": "a report", "state": "idle", "xid_age": 9}


def test_an_old_transaction_is_wrong_and_a_young_one_is_not() -> None:
    young = doctor._horizon({**OLD, "age_s": doctor.OLD_SNAPSHOT_S})
    old = doctor._horizon({**OLD, "age_s": doctor.OLD_SNAPSHOT_S + 0.1})
    assert (young.ok, old.ok) == (True, False)
    assert old.told.endswith("keeps dead rows alive: end it")


def test_a_slot_that_nobody_reads_is_wrong_by_its_distance() -> None:
    slot = {**OLD, "holder": "replication slot", "pid": None, "age_s": None}
    assert doctor._horizon({**slot, "xid_age": doctor.OLD_XIDS}).ok is True
    assert doctor._horizon({**slot, "xid_age": doctor.OLD_XIDS + 1}).ok is False


@pytest.mark.parametrize(
    ("live", "dead", "ok"), [(0, 100_000, True), (0, 100_001, False), (100_000, 400_000, True)]
)
def test_many_dead_rows_are_wrong(live: int, dead: int, ok: bool) -> None:
    assert doctor._rows({"live": live, "dead": dead}).ok is ok


@pytest.mark.parametrize(("version", "ok"), [("14.9", False), ("15.0", True), ("18.6", True)])
def test_an_old_postgresql_is_wrong(version: str, ok: bool) -> None:
    assert doctor._version(version).ok is ok
