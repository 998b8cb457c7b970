"""Detection that fails, hangs, or finds no room to work in: the node says so and goes on."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from umbra_agent.devices import disk
from umbra_agent.devices.detection import Detector

from tests.agent.conftest import Launcher, alive, until
from tests.agent.stub import Call, Stub

CPU = {"label": "cpu", "kind": "cpu", "ram_total_mb": 8000, "ram_free_mb": 7000, "healthy": True}
FOUND = json.dumps({"devices": [CPU], "disk_free_mb": 1, "flaw": None, "doubts": []})


def mark(folder: Path) -> str:
    return f"UMBRA_TEST_CHILD={folder}"


def detector(folder: Path, script: str, limit_s: float = 0.3) -> Detector:
    """Return a detector whose child is a shell script, with `mark` in its environment."""
    name, _, value = mark(folder).partition("=")
    told = {"PATH": os.environ["PATH"], name: value, "FOUND": FOUND}
    return Detector(limit_s, folder, told, ("/bin/sh", "-c", script, "sh"))


async def test_what_was_found_is_reported_without_what_only_people_read(tmp_path: Path) -> None:
    found = await Detector(10.0, tmp_path, {"PATH": os.environ["PATH"]}).detect()
    report = found.report()
    assert report is not None
    assert [device["label"] for device in report] == ["cpu"]
    assert "why" not in report[0]
    assert (found.is_usable, found.flaw) == (True, None)
    assert found.disk_free_mb is not None


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("trap '' TERM; sleep 300", "did not answer within 0.3 s"),
        ("exit 3", "ended with exit code 3"),
        ("echo nonsense", "ended with exit code 0"),
        ("kill -SEGV $$", "ended with exit code -11"),
    ],
)
async def test_devices_keep_their_figures_and_are_unhealthy_until_it_works_again_p20(
    tmp_path: Path, script: str, reason: str
) -> None:
    flag = tmp_path / "broken"
    detecting = detector(tmp_path, f'[ ! -e {flag} ] || {{ {script}; exit $?; }}; echo "$FOUND"')
    detecting._limit_s = 5.0
    await detecting.detect()
    flag.touch()
    detecting._limit_s = 0.3
    for _ in range(2):
        broken = await detecting.detect()
        [device] = broken.report() or []
        assert (device["healthy"], device["ram_total_mb"]) == (False, 8000)
        assert reason in device["health_reason"]
        assert not broken.is_usable
        assert alive(mark(tmp_path)) == []
    flag.unlink()
    detecting._limit_s = 5.0
    assert (await detecting.detect()).report() == [CPU]


async def test_a_machine_that_could_not_be_looked_at_has_an_unhealthy_device(
    tmp_path: Path,
) -> None:
    missing = Detector(1.0, tmp_path, {}, ("/nowhere",))
    [device] = (await missing.detect()).report() or []
    assert (device["kind"], device["healthy"]) == ("cpu", False)
    assert "cannot be started" in device["health_reason"]
    assert "ram_total_mb" not in device


async def test_a_child_that_cannot_be_killed_stays_the_only_one_p20(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What hangs in the kernel is simulated by a kill that does nothing."""
    detecting = detector(tmp_path, "sleep 300")
    monkeypatch.setattr("umbra_agent.devices.detection.REAP_S", 0.1)
    with monkeypatch.context() as immortal:
        immortal.setattr(os, "killpg", lambda group, number: None)
        for _ in range(3):
            found = await detecting.detect()
    [device] = found.report() or []
    assert device["health_reason"] == "device detection hangs and cannot be ended"
    [*children] = alive(mark(tmp_path))
    assert len({os.getpgid(pid) for pid in children}) == 1
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    hung = detecting._hung
    assert hung is not None
    await hung.wait()


def test_a_folder_that_cannot_be_written_to_is_a_flaw_n18(tmp_path: Path) -> None:
    assert disk.flaw(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert "No such file" in (disk.flaw(tmp_path / "gone") or "")
    assert disk.free_mb(tmp_path / "gone") is None


async def test_the_heart_beats_on_while_detection_hangs_and_nothing_is_claimed_p20(
    controller: Stub, launcher: Launcher, tmp_path: Path
) -> None:
    flag, hanging = tmp_path / "broken", tmp_path / "hanging"
    script = f"while [ -e {flag} ]; do touch {hanging}; sleep 0.05; done; echo '{FOUND}'"
    await launcher.start("cat", agent="detect_limit_s = 1", detector=script)
    await until(lambda: controller.of("claim"))
    flag.touch()
    await until(hanging.exists)
    times: list[float] = []

    async def note(body: Call) -> None:
        times.append(asyncio.get_running_loop().time())

    controller.answers["heartbeat"] = note
    await until(lambda: _health(controller) == "device detection did not answer within 1 s")
    await until(lambda: len(times) > 10)
    assert max(later - earlier for earlier, later in pairwise(times)) < 1.0  # asked for: 0.2
    flag.unlink()
    await until(lambda: _health(controller) is None)
    lease_id = controller.job()
    await until(lambda: controller.endings(lease_id))


def _health(controller: Stub) -> str | None:
    reason: str | None = controller.of("heartbeat")[-1]["devices"][0].get("health_reason")
    return reason


async def test_nothing_is_claimed_before_a_slow_detection_has_ended_p40(
    controller: Stub, launcher: Launcher, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = f"while [ ! -e {gate} ]; do sleep 0.05; done; echo '{FOUND}'"
    await launcher.start("cat", detector=script)
    await until(lambda: len(controller.of("heartbeat")) > 3)
    assert all("devices" not in report for report in controller.of("heartbeat"))
    assert controller.of("claim") == []
    gate.touch()
    await until(lambda: controller.of("claim"))
    assert controller.of("heartbeat")[-1]["devices"] == [CPU]


async def test_a_stop_while_detection_hangs_ends_soon_and_leaves_no_child_p38(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("cat", detector="trap '' TERM; sleep 300")
    await until(lambda: controller.of("heartbeat"))
    agent.signal(signal.SIGTERM)
    async with asyncio.timeout(5):
        assert await agent.process.wait() == 0
    assert alive(agent.mark) == []


async def test_a_detection_outlives_no_agent_that_was_killed(
    controller: Stub, launcher: Launcher
) -> None:
    agent = await launcher.start("cat", detector="trap '' TERM; sleep 300")
    await until(lambda: controller.of("heartbeat"))
    agent.process.kill()
    await until(lambda: alive(agent.mark) == [])


async def test_a_node_without_room_to_work_gives_back_and_claims_no_more_n18(
    controller: Stub, launcher: Launcher, tmp_path: Path
) -> None:
    room = tmp_path / "room"
    agent = await launcher.start("cat", agent=f'heartbeat_s = 0.3\nwork_dir = "{room}"')
    await until(lambda: controller.of("claim"))
    [folder] = room.iterdir()
    aside = folder.rename(tmp_path / "aside")
    lease_id = controller.job()
    await until(lambda: controller.endings(lease_id))
    assert [name for name, _ in controller.endings(lease_id)] == ["release"]
    await until(lambda: "work_dir" in (_health(controller) or ""))
    second = controller.job()
    claims = len(controller.of("claim"))
    beats = len(controller.of("heartbeat"))
    await until(lambda: len(controller.of("heartbeat")) > beats + 3)
    assert len(controller.of("claim")) == claims
    aside.rename(folder)
    await until(lambda: controller.endings(second))
    assert "node.doubted" in agent.events()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_no_folder_of_jobs_is_left(
    controller: Stub, launcher: Launcher, tmp_path: Path, how: signal.Signals
) -> None:
    room = tmp_path / "room"
    agent = await launcher.start("sleep 300", agent=f'work_dir = "{room}"\ndrain_s = 0')
    controller.job()
    await until(agent.work)
    agent.signal(how)
    await agent.ended()

    def is_empty() -> bool:
        with suppress(FileNotFoundError):
            return list(room.iterdir()) == []
        return False

    check: Callable[[], bool] = is_empty
    await until(check)
