"""The controller answers as the golden file says."""

import pytest

from tests.contract.golden import JOB_ID, LEASE_ID, NODE, differences
from tests.http.conftest import admin, app, client, hasher, keys
from tests.http.work import Work, work

__all__ = ["admin", "app", "client", "hasher", "keys", "work"]

HELD = [name for name in NODE if name not in ("claim", "lost", "node", "question")]


async def hold(work: Work) -> None:
    """Let the node hold the golden job under the golden lease."""
    await work.running()
    await work.pool.execute("UPDATE jobs SET id = $1, lease_id = $2", JOB_ID, LEASE_ID)
    await work.pool.execute("UPDATE job_events SET job_id = $1", JOB_ID)


@pytest.mark.parametrize("name", HELD)
async def test_a_holder_is_answered_as_in_the_contract(work: Work, name: str) -> None:
    await hold(work)
    golden = NODE[name]
    told = await work.call(work.node, golden["method"], golden["path"], golden["body"])
    assert told.pop("http") == golden["status"]
    assert differences(told, golden["reply"]) == []


async def test_a_claim_is_answered_as_in_the_contract(work: Work) -> None:
    await work.submit(payload={"n": 1})
    golden = NODE["claim"]
    told = await work.call(work.node, golden["method"], golden["path"], golden["body"])
    assert told.pop("http") == golden["status"]
    assert differences(told, golden["reply"]) == []


@pytest.mark.parametrize("name", ["complete", "fail", "release"])
async def test_a_lost_lease_is_answered_as_in_the_contract(work: Work, name: str) -> None:
    await hold(work)
    await work.pool.execute("UPDATE jobs SET lease_id = gen_random_uuid()")
    told = await work.call(work.node, "POST", NODE[name]["path"], NODE[name]["body"])
    assert {key: told[key] for key in NODE["lost"]} == NODE["lost"]


@pytest.mark.parametrize("name", ["heartbeat", "renew", "complete_many"])
async def test_a_scope_can_be_asked_for_without_changing_anything(work: Work, name: str) -> None:
    """`umbra-agent check` sends a body that no route accepts: the scope is looked at first."""
    before = await work.pool.fetchval("SELECT last_heartbeat_at FROM compute_nodes")
    told = await work.call(work.node, "POST", NODE[name]["path"], NODE["question"])
    assert (told["http"], told["code"]) == (422, "invalid_body")
    assert await work.pool.fetchval("SELECT last_heartbeat_at FROM compute_nodes") == before


async def test_a_node_sees_itself_as_in_the_contract(work: Work) -> None:
    beat, golden = NODE["heartbeat"], NODE["node"]
    await work.call(work.node, beat["method"], beat["path"], beat["body"])
    told = await work.call(work.node, golden["method"], golden["path"])
    assert told.pop("http") == golden["status"]
    assert differences(told, golden["reply"]) == []
