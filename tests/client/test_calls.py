"""Every method of both clients against the real controller."""

from collections.abc import AsyncIterator

import pytest

from tests.client.both import CLIENTS, Either
from tests.http.conftest import Caller, Keys
from tests.http.conftest import Client as Served
from umbra_compute.client import ApiError, RefusedCredentials
from umbra_compute.model.caller import ApiScope


@pytest.fixture(params=list(CLIENTS))
async def api(
    served: Served, admin: Caller, request: pytest.FixtureRequest
) -> AsyncIterator[Either]:
    either = Either(CLIENTS[request.param](str(served.make_url("")), admin.key))
    yield either
    await either.close()


async def test_work_goes_in_and_is_seen(api: Either) -> None:
    asked = {"kind": "work", "payload": {"n": 0}, "idempotency_key": "one", "priority": 0}
    made = await api("submit", asked)
    assert (made["status"], made["priority"], made["payload"]) == ("queued", 0, {"n": 0})
    assert (await api("submit", asked))["id"] == made["id"]
    batch = await api("submit_batch", [{"kind": "other"}, asked])
    assert [one["created"] for one in batch] == [True, False]
    assert [job["kind"] for job in await api("jobs")] == ["other", "work"]
    assert [job["id"] for job in await api("jobs", kind="work", limit=1)] == [made["id"]]
    assert [e["event"] for e in await api("events", made["id"])] == ["queued"]
    assert (await api("queue"))["queued"] == 2


async def test_work_is_cancelled_and_waited_for(api: Either) -> None:
    made = await api("submit", {"kind": "work"})
    assert (await api("wait", made["id"], within_s=0.05))["status"] == "queued"
    assert (await api("cancel", made["id"]))["status"] == "cancelled"
    assert (await api("wait", made["id"]))["status"] == "cancelled"
    assert (await api("job", made["id"]))["status"] == "cancelled"


async def test_machines_are_enrolled_changed_and_retired(api: Either) -> None:
    made = await api("add_node", "desk", trust_domain="office", max_jobs=0)
    assert (made["name"], made["trust_domain"], made["max_jobs"]) == ("desk", "office", 0)
    key = await api("add_node_key", made["id"], scopes=["compute:read"])
    assert key["node_key"].startswith("umn_")
    [listed] = await api("node_keys", made["id"])
    assert listed == {name: value for name, value in key.items() if name != "node_key"}
    await api("revoke_node_key", made["id"], key["id"])
    drained = await api("change_node", made["id"], status="draining")
    assert drained["status"] == "draining"
    assert await api("nodes") == [drained]
    assert await api("nodes", status="online") == []
    await api("retire_node", made["id"])
    assert (await api("node", made["id"]))["status"] == "retired"


async def test_models_are_registered_by_names_with_slashes(api: Either) -> None:
    made = await api("put_model", "org/llama3:8b", vram_min_mb=0)
    assert (made["slug"], made["vram_min_mb"], made["ram_min_mb"]) == ("org/llama3:8b", 0, None)
    assert await api("model", "org/llama3:8b") == made
    assert await api("models") == [made]
    await api("delete_model", "org/llama3:8b")
    with pytest.raises(ApiError) as refused:
        await api("model", "org/llama3:8b")
    assert refused.value.code == "model_not_found"


async def test_keys_are_made_listed_and_revoked(api: Either) -> None:
    made = await api("add_key", "a program", ["jobs:read"], expires_in_s=3600)
    assert made["api_key"].startswith("umk_")
    assert {key["name"] for key in await api("keys")} == {"admin", "a program"}
    await api("revoke_key", made["id"])
    assert [key["revoked_at"] is None for key in await api("keys")] == [False, True]


async def test_the_service_says_how_it_is(api: Either) -> None:
    assert await api("alive") == {"status": "ok"}
    assert await api("ready") == {"status": "ready", "database": "ok", "schema": "ok"}


async def test_a_bad_field_is_named_by_its_path(api: Either) -> None:
    with pytest.raises(ApiError) as refused:
        await api("submit", {"kind": "", "requires": {"vram": 1}})
    assert (refused.value.status, refused.value.code) == (422, "invalid_body")
    assert [fault["path"] for fault in refused.value.errors] == ["$.kind", "$.requires.vram"]


@pytest.mark.parametrize("client", list(CLIENTS.values()))
async def test_a_key_for_something_else_is_told_what_it_lacks(
    client: type, served: Served, admin: Caller, keys: Keys
) -> None:
    reader = await keys.api(admin.organization_id, ApiScope.NODES_READ)
    either = Either(client(str(served.make_url("")), reader.key))
    with pytest.raises(RefusedCredentials, match="jobs:write") as refused:
        await either("submit", {"kind": "work"})
    await either.close()
    assert refused.value.code == "missing_scope"
