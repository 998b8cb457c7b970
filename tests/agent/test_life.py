"""The agent's own life: its key, its signs of life, partitions, and how it stops."""

import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from tests.agent.conftest import Launcher, argv_of, environment_of, until
from tests.agent.stub import KEY, Call, Stub, problem


async def test_the_key_comes_by_environment_or_by_a_pipe(
    controller: Stub, launcher: Launcher
) -> None:
    await launcher.start()
    await until(lambda: controller.of("heartbeat"))
    controller.calls.clear()
    for agent in launcher.agents:
        agent.process.kill()
    await launcher.start("cat", "--node-key-stdin", environment={}, stdin=f"{KEY}\n".encode())
    await until(lambda: controller.of("heartbeat"))


async def test_no_key_and_an_empty_pipe_are_told_apart(launcher: Launcher) -> None:
    nothing = await launcher.start("cat", environment={})
    assert await nothing.ended() == 3
    assert "There is no key" in nothing.log_path.read_text()
    empty = await launcher.start("cat", "--node-key-stdin", environment={}, stdin=b"")
    assert await empty.ended() == 3
    assert "the pipe is empty" in empty.log_path.read_text()


async def test_the_key_is_in_no_argv_no_child_and_no_log_s28(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("sleep 300")
    controller.job()
    for pid in await until(agent.work):
        assert KEY.encode() not in environment_of(pid)
        assert KEY.encode() not in argv_of(pid)
    assert KEY.encode() not in argv_of(agent.pid)
    assert KEY not in agent.log_path.read_text()


async def test_a_refused_key_is_said_once_and_ends_the_agent(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("cat", environment={"UMBRA_NODE_KEY": "umn_wrong"})
    assert await agent.ended() == 4
    assert agent.events().count("key.refused") == 1


async def test_a_key_that_is_refused_later_ends_the_work_too_p37(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("sleep 300")
    controller.job()
    await until(agent.work)

    async def refuse(body: Call) -> web.Response:
        return problem(401, "unauthorized")

    controller.answers["heartbeat"] = refuse
    assert await agent.ended() == 4
    await until(lambda: not agent.work())


async def test_nothing_is_claimed_before_the_devices_are_known_p40(
    controller: Stub, launcher: Launcher
) -> None:
    await launcher.start()
    lease_id = controller.job()
    await until(lambda: controller.endings(lease_id))
    names = [name for name, _ in controller.calls]
    before = controller.calls[: names.index("claim")]
    reports = [body for name, body in before if name == "heartbeat"]
    assert "devices" not in reports[0]
    assert reports[-1]["devices"][0]["kind"] == "cpu"
    assert [report["sequence"] for report in reports] == list(range(1, len(reports) + 1))


async def test_a_power_cut_holds_the_job(controller: Stub, launcher: Launcher) -> None:
    agent = await launcher.start("cat", "--power-cut-on-claim")
    lease_id = controller.job()
    assert await agent.ended() == 137
    assert controller.endings(lease_id) == []


async def test_a_stop_lets_work_finish_and_the_heart_beats_to_the_end_p37(
    controller: Stub, launcher: Launcher, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    agent = await launcher.start(f"while [ ! -e {gate} ]; do sleep 0.05; done; echo 1")
    lease_id = controller.job()
    await until(agent.work)
    agent.signal(signal.SIGTERM)
    await until(lambda: "agent.stopping" in agent.events())
    beats = len(controller.of("heartbeat"))
    claims = len(controller.of("claim"))
    controller.job()
    await until(lambda: len(controller.of("heartbeat")) > beats + 2)
    gate.touch()
    assert await agent.ended() == 0
    assert controller.endings(lease_id)[0][0] == "complete"
    assert len(controller.of("claim")) == claims
    assert agent.events()[-1] == "agent.stopped"


async def test_the_stop_file_stops_like_the_signal(
    controller: Stub, launcher: Launcher, tmp_path: Path
) -> None:
    path = tmp_path / "stop"
    agent = await launcher.start(agent=f'stop_file = "{path}"')
    await until(lambda: controller.of("claim"))
    path.touch()
    assert await agent.ended() == 0
    assert "stop_file.appeared" in agent.events()


async def test_what_a_drain_does_not_finish_is_given_back_q26(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("sleep 300", agent="drain_s = 0.2")
    lease_id = controller.job()
    await until(agent.work)
    agent.signal(signal.SIGTERM)
    assert await agent.ended() == 0
    assert [name for name, _ in controller.endings(lease_id)] == ["release"]


async def test_a_second_signal_gives_back_at_once(controller: Stub, launcher: Launcher) -> None:
    agent = await launcher.start("sleep 300", agent="drain_s = 3600")
    lease_id = controller.job()
    await until(agent.work)
    agent.signal(signal.SIGTERM)
    await until(lambda: "agent.stopping" in agent.events())
    agent.signal(signal.SIGTERM)
    assert await agent.ended() == 0
    assert [name for name, _ in controller.endings(lease_id)] == ["release"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("trap 'exit 0' TERM; while :; do sleep 0.05; done", "release"),
        ("""trap 'exit 0' TERM; echo 5 > "$UMBRA_RESULT_FILE"; while :; do sleep 0.05; done""",
         "complete"),
        ("trap '' TERM; while :; do sleep 0.05; done", "release"),
    ],
)  # fmt: skip
async def test_work_that_a_stop_ended_is_not_counted_as_done_p39(
    controller: Stub, launcher: Launcher, script: str, expected: str
) -> None:
    agent = await launcher.start(script, agent="drain_s = 0.5", handler="")
    lease_id = controller.job()
    await until(agent.work)
    agent.signal(signal.SIGTERM)
    assert await agent.ended() == 0
    assert [name for name, _ in controller.endings(lease_id)] == [expected]


async def test_a_stop_while_the_controller_is_away_ends_in_time_p39(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("sleep 300", agent="drain_s = 0")
    controller.job()
    await until(agent.work)
    controller.is_away = True
    agent.signal(signal.SIGTERM)
    assert await agent.ended() == 0
    assert agent.log()[-1]["undelivered"] != [] or "job.undelivered" in agent.events()


async def test_a_result_is_kept_and_delivered_when_the_controller_is_back(
    controller: Stub, launcher: Launcher, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    agent = await launcher.start(f"while [ ! -e {gate} ]; do sleep 0.05; done; echo 7")
    lease_id = controller.job()
    await until(agent.work)
    controller.is_away = True
    gate.touch()
    await until(lambda: not agent.work())
    assert controller.endings(lease_id) == []
    controller.is_away = False
    [(name, body)] = await until(lambda: controller.endings(lease_id))
    assert (name, body["result"]) == ("complete", 7)


async def test_work_is_stopped_before_its_lease_can_have_expired_p27(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("sleep 300", agent="lease_seconds = 5")
    lease_id = controller.job()
    await until(agent.work)
    controller.is_away = True
    await until(lambda: not agent.work())
    assert "job.fenced" in agent.events()
    controller.is_away = False
    other = controller.job()
    await until(agent.work)  # it goes on, with other work
    assert controller.endings(lease_id) == []
    assert controller.endings(other) == []


async def test_an_agent_that_slept_kills_first_and_asks_then_p29(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("sleep 300", agent="lease_seconds = 5")
    lease_id = controller.job()
    await until(lambda: "job.started" in agent.events())
    agent.signal(signal.SIGSTOP)
    controller.lost.add(lease_id)
    [line] = [line for line in agent.log() if line["event"] == "job.started"]
    await until(lambda: _seconds_since(line["at"]) > 5)
    controller.calls.clear()
    agent.signal(signal.SIGCONT)
    await until(lambda: not agent.work())
    assert "job.fenced" in agent.events()
    assert controller.endings(lease_id) == []
    controller.job()
    await until(agent.work)


async def test_a_controller_that_is_away_is_asked_with_growing_pauses(
    controller: Stub, launcher: Launcher
) -> None:
    controller.is_away = True
    agent = await launcher.start()
    await until(lambda: "controller.away" in agent.events())
    controller.is_away = False
    await until(lambda: "controller.heard" in agent.events())
    assert agent.events().count("controller.away") == 1


async def test_a_draining_node_claims_nothing(controller: Stub, launcher: Launcher) -> None:
    controller.draining = True
    await launcher.start()
    await until(lambda: len(controller.of("heartbeat")) > 3)
    assert controller.of("claim") == []
    controller.draining = False
    await until(lambda: controller.of("claim"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[agent]\nmax_jbos = 1\n", "the nearest is 'max_jobs'"),
        ("[agent]\nmax_jobs = 0\n", "from 1 to"),
        ("[agent]\nmax_jobs = true\n", "from 1 to"),
        ('[controller]\nurl = "http://example.org"\n', "use https"),
        ('[controller]\nurl = "nonsense"\n', "is no address"),
        ("[[handler]]\nkinds = []\n", "a list of texts"),
        ('[[handler]]\nkinds = ["a"]\n', "argv is missing"),
        ("[agent\n", "is no TOML"),
    ],
)
async def test_a_bad_configuration_is_one_sentence_and_exit_3(
    launcher: Launcher, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    agent = await launcher.run("run", "--config", str(path))
    assert await agent.ended() == 3
    told = agent.log_path.read_text()
    assert said in told
    assert len(told.splitlines()) == 1


def _seconds_since(at: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds()
