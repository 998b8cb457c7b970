"""The agent says what the golden file says, and lives with its answers."""

from typing import Any

import pytest
from aiohttp import web

from tests.agent.conftest import Launcher, controller, launcher, until
from tests.agent.stub import Call, Stub
from tests.contract.golden import LEASE_ID, NODE

__all__ = ["controller", "launcher"]


def shape(value: Any) -> Any:
    """Return the keys and kinds of a body, whatever its values."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value[:1]]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if number else type(value)


async def golden_claims(controller: Stub) -> None:
    """Hand out the golden job once, as the controller would."""
    handed: list[Call] = []

    async def claim(body: Call) -> web.Response | None:
        if handed:
            return None
        handed.append(body)
        reply = NODE["claim"]["reply"]["jobs"][0]
        job = {**reply["job"], "id": NODE["complete"]["path"].split("/")[4], "lease_id": LEASE_ID}
        lease = {**reply["lease"], "lease_id": LEASE_ID}
        return web.json_response({"jobs": [{**reply, "job": job, "lease": lease}]})

    controller.answers["claim"] = claim


@pytest.mark.parametrize(
    ("script", "name"),
    [("echo '{\"ok\": 1}'", "complete"), ("exit 3", "fail"), ("exit 75", "release")],
)
async def test_the_agent_calls_as_in_the_contract(
    controller: Stub, launcher: Launcher, script: str, name: str
) -> None:
    await golden_claims(controller)
    await launcher.start(script, agent="heartbeat_s = 20")
    await until(lambda: controller.endings(LEASE_ID))
    [(called, body)] = controller.endings(LEASE_ID)
    assert called == name
    assert shape(body) == shape(NODE[name]["body"])
    claim = controller.of("claim")[0]
    assert shape(claim) == shape(NODE["claim"]["body"])
    beat = next(call for call in controller.of("heartbeat") if "devices" in call)
    expected = shape(NODE["heartbeat"]["body"])
    assert shape({**beat, "leases": NODE["heartbeat"]["body"]["leases"]}) == {
        **expected, "measurements": shape(beat["measurements"])
    }  # fmt: skip
    assert beat["measurements"].keys() == NODE["heartbeat"]["body"]["measurements"].keys()


async def test_the_agent_renews_as_in_the_contract(controller: Stub, launcher: Launcher) -> None:
    await golden_claims(controller)
    script = """echo '{"fraction": 0.5, "message": "half"}' > "$UMBRA_PROGRESS_FILE"; sleep 300"""
    await launcher.start(script, agent="lease_seconds = 5")
    controller.lost.clear()

    def with_progress() -> list[Call]:
        calls = controller.of("renew")
        return [call for call in calls if "progress" in call["leases"][0]]

    [call, *_] = await until(with_progress, within_s=40)
    assert shape(call) == shape(NODE["renew"]["body"])
