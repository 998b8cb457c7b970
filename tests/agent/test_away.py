"""Controllers that are slow, gone, strange or unkind, and leases whose age nobody knows."""

import asyncio
import signal

import pytest
from aiohttp import web

from tests.agent.conftest import Launcher, until
from tests.agent.stub import Call, Stub, problem


async def never(body: Call) -> web.Response | None:
    """Swallow the call, as a partition does."""
    await asyncio.Event().wait()
    return None


async def test_slow_renewals_and_a_lost_one_cost_no_lease_q07(
    controller: Stub, launcher: Launcher
) -> None:
    """Each answer comes after 0.4 of the lease, every fourth never."""
    calls: list[float] = []

    async def slow(body: Call) -> web.Response | None:
        calls.append(asyncio.get_running_loop().time())
        if len(calls) % 4 == 0:
            await never(body)
        await asyncio.sleep(2.0)
        return None

    controller.answers["renew"] = slow
    agent = await launcher.start("sleep 300", agent="lease_seconds = 5")
    controller.job()
    await until(lambda: len(calls) >= 12, within_s=20)
    assert calls[-1] - calls[0] > 5 + 2  # later than the first lease's end
    assert "job.fenced" not in agent.events()
    assert agent.work() != []


async def test_calm_renewals_come_at_a_third_of_the_lease(
    controller: Stub, launcher: Launcher
) -> None:
    at: list[float] = []

    async def note(body: Call) -> None:
        at.append(asyncio.get_running_loop().time())

    controller.answers["renew"] = note
    await launcher.start("sleep 300", agent="lease_seconds = 5")
    controller.job()
    await until(lambda: len(at) == 4)
    assert at[3] - at[2] > 5 / 3 - 0.5


async def test_a_lease_out_of_a_long_poll_is_renewed_before_work_begins(
    controller: Stub, launcher: Launcher, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A machine that slept finds the answer in its buffers: the lease is long lost."""
    folder = tmp_path_factory.mktemp("ran")
    agent = await launcher.start(f'touch {folder}/"$UMBRA_JOB_ID"; echo 1')
    await until(lambda: controller.of("claim"))
    agent.signal(signal.SIGSTOP)
    lost = controller.job()
    controller.lost.add(lost)
    await until(lambda: not controller.waiting)  # the answer is on its way
    beats = asyncio.get_running_loop().time()
    await until(lambda: asyncio.get_running_loop().time() > beats + 1.5)
    agent.signal(signal.SIGCONT)
    await until(lambda: "job.dropped" in agent.events())
    good = controller.job()
    await until(lambda: controller.endings(good))
    assert controller.endings(lost) == []
    assert len(list(folder.iterdir())) == 1


async def test_a_job_cancelled_before_it_started_never_starts_p26(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("cat")
    await until(lambda: controller.of("claim"))
    beats = len(controller.of("heartbeat"))
    await until(lambda: len(controller.of("heartbeat")) > beats + 6)  # the poll is no quick one
    job = controller.waiting
    async with asyncio.timeout(5):
        lease_id = controller.job()
        controller.cancel.add(lease_id)
        await until(lambda: not job)
    await until(lambda: controller.endings(lease_id))
    assert [name for name, _ in controller.endings(lease_id)] == ["release"]
    assert "job.started" not in agent.events()


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(text="<html>Log in</html>"),
        web.json_response({}),
        web.json_response({"jobs": [{"job": {"id": 5}}]}),
        web.json_response({"jobs": None}),
        web.json_response([]),
        web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"}),
        web.Response(status=404, text="no such page"),
        web.Response(status=502, text="bad gateway"),
        problem(422, "invalid_body"),
        problem(403, "missing_scope"),
    ],
    ids=str,
)
async def test_an_answer_to_a_claim_that_is_none_is_said_once_and_waited_out(
    controller: Stub, launcher: Launcher, answer: web.Response
) -> None:
    count = 0

    async def strange(body: Call) -> web.Response:
        nonlocal count
        count += 1
        return web.Response(body=answer.body, status=answer.status, headers=answer.headers)

    controller.answers["claim"] = strange
    agent = await launcher.start("sleep 300")
    await until(lambda: count >= 2)
    del controller.answers["claim"]
    controller.job()
    await until(agent.work)
    assert agent.events().count("claim.failed") == 1


async def test_the_key_follows_no_redirect(controller: Stub, launcher: Launcher) -> None:
    async def elsewhere(body: Call) -> web.Response:
        return web.Response(status=307, headers={"Location": f"{controller.url}/v1/node/complete"})

    controller.answers["claim"] = elsewhere
    agent = await launcher.start()
    await until(lambda: "claim.failed" in agent.events())
    assert controller.of("complete_many") == []


async def test_a_heartbeat_answered_404_ends_the_work_p37(
    controller: Stub, launcher: Launcher
) -> None:
    async def unknown(body: Call) -> web.Response:
        return problem(404, "not_found")

    agent = await launcher.start("sleep 300")
    controller.job()
    await until(agent.work)
    controller.answers["heartbeat"] = unknown
    assert await agent.ended() == 4
    assert agent.work() == []
    [line] = [line for line in agent.log() if line["event"] == "key.refused"]
    assert line["detail"] == "not_found"


@pytest.mark.parametrize("route", ["complete", "release"])
async def test_a_stop_during_a_call_that_hangs_ends_in_time_and_names_the_job_p38(
    controller: Stub, launcher: Launcher, route: str
) -> None:
    controller.answers[route] = never
    script = "echo 1" if route == "complete" else "sleep 300"
    agent = await launcher.start(script, agent="drain_s = 0", kill_grace_s=0)
    controller.job()
    await until(lambda: "job.started" in agent.events())
    await until(lambda: route == "release" or controller.of("complete"))
    agent.signal(signal.SIGTERM)
    async with asyncio.timeout(8):
        assert await agent.process.wait() == 0
    [started] = [line for line in agent.log() if line["event"] == "job.started"]
    last = agent.log()[-1]
    assert (last["event"], last["undelivered"]) == ("agent.stopped", [started["job_id"]])


async def test_a_second_signal_ends_the_grace_as_well(controller: Stub, launcher: Launcher) -> None:
    agent = await launcher.start(
        "trap '' TERM; while :; do sleep 0.05; done", agent="drain_s = 0", kill_grace_s=600
    )
    lease_id = controller.job()
    await until(agent.work)
    agent.signal(signal.SIGTERM)
    await until(lambda: "job.stopping" in agent.events())
    agent.signal(signal.SIGTERM)
    assert await agent.ended() == 0
    assert [name for name, _ in controller.endings(lease_id)] == ["release"]


async def test_what_waits_is_delivered_as_soon_as_the_heart_is_heard(
    controller: Stub, launcher: Launcher
) -> None:
    async def not_now(body: Call) -> web.Response:
        answer = problem(503, "database_unavailable")
        answer.headers["Retry-After"] = "60"
        return answer

    controller.answers["complete"] = not_now
    agent = await launcher.start("echo 1")
    lease_id = controller.job()
    await until(lambda: "delivery.waiting" in agent.events())
    controller.is_away = True
    await until(lambda: "controller.away" in agent.events())
    del controller.answers["complete"]
    controller.is_away = False
    await until(lambda: len(controller.endings(lease_id)) == 2)
