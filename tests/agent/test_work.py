"""Jobs run by a real agent: what becomes of them, and what is left of them."""

import json
import os
import signal
from typing import Any

import pytest
from aiohttp import web

from tests.agent.conftest import Launcher, alive, argv_of, peak_kb, until
from tests.agent.stub import Call, Stub, problem

ESCAPING = """
(trap '' TERM; exec sleep 300) &
setsid sh -c "trap '' TERM; sleep 300 & sleep 300" &
(setsid sleep 300 &) &
"""
"""Ignores TERM, leaves its session, forks twice."""


async def ending(controller: Stub, lease_id: str) -> tuple[str, Call]:
    found: tuple[str, Call] = (await until(lambda: controller.endings(lease_id)))[0]
    return found


async def test_the_payload_goes_in_and_the_result_comes_back(
    controller: Stub, launcher: Launcher
) -> None:
    await launcher.start()
    lease_id = controller.job(payload={"text": "snow ☃", "n": [0, 1.5, None]})
    assert await ending(controller, lease_id) == (
        "complete",
        {"lease_id": lease_id, "result": {"text": "snow ☃", "n": [0, 1.5, None]}},
    )


async def test_a_job_knows_its_id_attempt_device_and_files_and_no_key(
    controller: Stub, launcher: Launcher
) -> None:
    told = '{"attempt": "%s", "device": "%s", "key": "%s"}'
    names = '"$UMBRA_ATTEMPT" "$UMBRA_DEVICE" "$UMBRA_NODE_KEY"'
    script = f"""printf '{told}' {names} > "$UMBRA_RESULT_FILE" """
    await launcher.start(script, handler="")
    lease_id = controller.job(attempt=2)
    name, body = await ending(controller, lease_id)
    assert name == "complete"
    assert (body["result"]["attempt"], body["result"]["device"]) == ("2", "cpu")
    assert body["result"]["key"] == ""


@pytest.mark.parametrize(
    ("script", "handler", "name", "told"),
    [
        ("echo oops >&2; exit 3", "", "fail", {"retry": True, "error": "Exit code 3.\noops"}),
        ("exit 4", "permanent_exit_codes = [4]", "fail", {"retry": False}),
        ("exit 75", "", "release", {}),
        ("kill -SEGV $$", "", "fail", {"retry": True, "error": "Killed by signal SIGSEGV."}),
        ("true", "", "fail", {"retry": False}),
        ("echo no json", 'result = "stdout"', "fail", {"retry": False}),
        ("echo NaN", 'result = "stdout"', "fail", {"retry": False}),
        ("yes | head -c 2000000", 'result = "stdout"', "fail", {"retry": False}),
        ("head -c 200 /dev/zero >&2; exit 1", "", "fail", {"retry": True}),
        ("printf '\\377' >&2; exit 1", "", "fail", {"error": "Exit code 1.\n\ufffd"}),
    ],
)
async def test_how_a_program_ends_is_told_apart(
    controller: Stub,
    launcher: Launcher,
    script: str,
    handler: str,
    name: str,
    told: dict[str, Any],
) -> None:
    await launcher.start(script, handler=handler)
    called, body = await ending(controller, controller.job())
    assert called == name
    assert {key: body[key] for key in told} == told
    assert "\0" not in json.dumps(body)


async def test_a_program_that_cannot_be_started_fails_at_once(
    controller: Stub, launcher: Launcher
) -> None:
    await launcher.start(handler='cwd = "/nowhere"')
    called, body = await ending(controller, controller.job())
    assert called == "fail"
    assert "cannot be started" in body["error"]


async def test_gigabytes_of_output_are_read_in_bounded_memory(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("head -c 300000000 /dev/zero; exit 1", handler="")
    called, _ = await ending(controller, controller.job())
    assert called == "fail"
    assert peak_kb(agent.pid) < 100_000


async def test_progress_goes_with_the_renewals(controller: Stub, launcher: Launcher) -> None:
    script = """echo '{"fraction": 0.5, "message": "half"}' > "$UMBRA_PROGRESS_FILE"; sleep 300"""
    await launcher.start(script, agent="lease_seconds = 5")
    controller.job()

    def told() -> bool:
        items = [item for call in controller.of("renew") for item in call["leases"]]
        return {"fraction": 0.5, "message": "half"} in [item.get("progress") for item in items]

    await until(told)


@pytest.mark.parametrize("how", ["done", "cancel", "runtime", "lost", "stop", "kill"])
async def test_no_process_of_a_job_outlives_it_p23(
    controller: Stub, launcher: Launcher, how: str
) -> None:
    lasts = "sleep 0.2; echo 1" if how == "done" else "sleep 300"
    agent = await launcher.start(ESCAPING + lasts, agent="lease_seconds = 5\ndrain_s = 0")
    requires = {"max_runtime_s": 1} if how == "runtime" else {}
    lease_id = controller.job(requires=requires)
    await until(agent.work)
    match how:
        case "cancel":
            controller.cancel.add(lease_id)
        case "lost":
            controller.lost.add(lease_id)
        case "stop":
            agent.signal(signal.SIGTERM)
        case "kill":
            agent.process.kill()
    await until(lambda: not agent.work())
    if how in ("stop", "kill"):
        await agent.ended()
        await until(lambda: not alive(agent.mark))  # the guardian is gone as well
    expected = {"done": "complete", "cancel": "release", "runtime": "fail", "stop": "release"}
    if how in expected:
        called, body = await ending(controller, lease_id)
        assert called == expected[how]
        assert how != "runtime" or "max_runtime_s = 1" in body["error"]
    else:
        assert controller.endings(lease_id) == []


async def test_a_program_dies_with_its_agent_even_without_the_guardian_p23(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("exec sleep 300")
    controller.job()
    await until(agent.work)
    others = set(alive(agent.mark)) - {agent.pid, *agent.work()}
    guardians = [pid for pid in others if b"guardian" in argv_of(pid)]
    for pid in guardians:
        os.kill(pid, signal.SIGKILL)
    agent.process.kill()
    await until(lambda: not agent.work())
    assert len(guardians) == 1


async def test_a_result_that_cannot_be_stored_fails_without_retry_q12(
    controller: Stub, launcher: Launcher
) -> None:
    async def refuse(body: Call) -> web.Response:
        return problem(422, "invalid_body", errors=[{"path": "$.result", "detail": "NUL"}])

    controller.answers["complete"] = refuse
    await launcher.start("""printf '"\\\\u0000"'""")
    lease_id = controller.job()
    await until(lambda: len(controller.endings(lease_id)) == 2)
    _, (called, body) = controller.endings(lease_id)
    assert (called, body["retry"]) == ("fail", False)
    assert "$.result" in body["error"]


@pytest.mark.parametrize(
    ("status", "code"),
    [(409, "lease_lost"), (404, "job_not_found"), (404, "not_found"), (409, "conflict")],
)
async def test_a_report_that_is_refused_for_good_is_not_repeated_n20(
    controller: Stub, launcher: Launcher, status: int, code: str
) -> None:
    async def lost(body: Call) -> web.Response:
        return problem(status, code)

    await launcher.start()
    controller.answers["complete"] = lost
    first = controller.job()
    await until(lambda: controller.endings(first))
    del controller.answers["complete"]
    second = controller.job()
    assert (await ending(controller, second))[0] == "complete"
    assert len(controller.endings(first)) == 1


async def test_jobs_run_beside_each_other_up_to_the_limit(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("sleep 300", agent="max_jobs = 3")
    for _ in range(5):
        controller.job()
    await until(lambda: agent.events().count("job.started") == 3)
    assert len(controller.waiting) == 2
    assert all(call["limit"] <= 3 for call in controller.of("claim"))
