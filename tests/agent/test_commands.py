"""init, detect, check, --help: what people run before `run`."""

import json
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.agent.conftest import Agent, Launcher, resident_kb, until
from tests.agent.stub import KEY, Stub, problem

WITH_KEY = {"UMBRA_NODE_KEY": KEY}


async def told(launcher: Launcher, *argv: str, **environment: str) -> tuple[int, str]:
    agent: Agent = await launcher.run(*argv, environment=environment)
    status = await agent.ended()
    return status, agent.log_path.read_text()


def configuration(folder: Path, url: str, argv: str = '["cat"]', more: str = "") -> str:
    path = folder / "agent.toml"
    path.write_text(
        f'[controller]\nurl = "{url}"\n[[handler]]\nkinds = ["work"]\nargv = {argv}\n{more}\n'
    )
    return str(path)


async def test_init_writes_what_check_accepts_and_overwrites_nothing_unasked(
    launcher: Launcher, controller: Stub, tmp_path: Path
) -> None:
    path = str(tmp_path / "new.toml")
    assert (await told(launcher, "init", path))[0] == 0
    status, text = await told(launcher, "check", "--config", path, "--url", controller.url,
                              **WITH_KEY)  # fmt: skip
    assert status == 0, text
    status, text = await told(launcher, "init", path)
    assert (status, "--force" in text) == (1, True)
    assert (await told(launcher, "init", path, "--force"))[0] == 0
    status, text = await told(launcher, "init", str(tmp_path / "none" / "new.toml"))
    assert (status, "cannot be written" in text) == (3, True)


async def test_check_says_line_by_line_what_is_well(
    launcher: Launcher, controller: Stub, tmp_path: Path
) -> None:
    path = configuration(tmp_path, controller.url)
    status, text = await told(launcher, "check", "--config", path, **WITH_KEY)
    assert status == 0
    lines = [line.split()[:2] for line in text.splitlines()]
    names = ("configuration", "controller", "key", "handler")
    assert lines == [["ok", name] for name in names]
    assert KEY not in text
    assert controller.of("heartbeat") == controller.of("claim") == []


@pytest.mark.parametrize(
    ("argv", "more", "said"),
    [
        ('["no-such-program"]', "", "there is no program no-such-program"),
        ('["./cat"]', 'cwd = "/"', "there is no program /cat"),
        ('["cat"]', 'cwd = "/nowhere"', "there is no folder /nowhere"),
        ('["cat"]', 'env = { PATH = "/nowhere" }', "there is no program cat"),
    ],
)
async def test_check_names_handlers_that_could_not_run(
    launcher: Launcher, controller: Stub, tmp_path: Path, argv: str, more: str, said: str
) -> None:
    path = configuration(tmp_path, controller.url, argv, more)
    status, text = await told(launcher, "check", "--config", path, **WITH_KEY)
    assert (status, said in text) == (1, True), text


async def test_check_tells_a_refused_key_from_a_missing_scope_from_silence(
    launcher: Launcher, controller: Stub, tmp_path: Path
) -> None:
    path = configuration(tmp_path, controller.url)
    assert (await told(launcher, "check", "--config", path))[0] == 3
    status, text = await told(launcher, "check", "--config", path, UMBRA_NODE_KEY="umn_other")
    assert (status, "WRONG  key" in text) == (4, True)

    async def missing(body: object) -> web.Response:
        return problem(403, "missing_scope")

    controller.answers["complete_many"] = missing
    status, text = await told(launcher, "check", "--config", path, **WITH_KEY)
    assert (status, "lacks compute:complete" in text) == (4, True)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        status, text = await told(launcher, "check", "--config", path, "--url", url, **WITH_KEY)
    assert (status, "does not answer" in text) == (5, True)


async def test_detect_shows_what_will_be_reported_and_why(launcher: Launcher) -> None:
    status, text = await told(launcher, "detect")
    assert status == 0
    assert text.split()[0] == "LABEL"
    assert "memory by" in text
    status, text = await told(launcher, "detect", "--json")
    [cpu] = json.loads(text)["devices"]
    assert (status, cpu["kind"], cpu["healthy"]) == (0, "cpu", True)
    assert cpu["ram_total_mb"] > cpu["ram_free_mb"] > 0


@pytest.mark.parametrize("argv", [(), ("--help",), ("run", "--help")])
async def test_help_loads_neither_loop_nor_client(
    launcher: Launcher, argv: tuple[str, ...]
) -> None:
    agent = await launcher.module("tests.agent.imported", *argv)
    assert await agent.ended() == 0
    loaded = set(agent.log_path.read_text().splitlines()[-1].split())
    assert loaded & {"aiohttp", "asyncio", "ssl"} == set()


async def test_an_unknown_flag_is_usage(launcher: Launcher) -> None:
    status, text = await told(launcher, "run", "--key", "umn_x")
    assert (status, "--help" in text) == (2, True)


async def test_an_idle_agent_holds_little_memory(controller: Stub, launcher: Launcher) -> None:
    agent = await launcher.start()
    await until(lambda: controller.of("claim"))
    assert resident_kb(agent.pid) < 45 * 1024


@pytest.fixture
async def supervisor(tmp_path: Path) -> AsyncIterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.setblocking(False)
        yield channel


async def test_a_supervisor_hears_ready_alive_and_stopping(
    controller: Stub, launcher: Launcher, tmp_path: Path, supervisor: socket.socket
) -> None:
    path = str(tmp_path / "notify")
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    told = {**WITH_KEY, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
    agent = await launcher.start(environment=told)
    heard: list[bytes] = []

    def count() -> int:
        while True:
            try:
                heard.append(supervisor.recv(100))
            except BlockingIOError:
                return len(heard)

    await until(lambda: count() >= 4)
    agent.process.terminate()
    assert await agent.ended() == 0
    count()
    assert set(heard) == {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"}
    assert heard.count(b"WATCHDOG=1") >= 3
