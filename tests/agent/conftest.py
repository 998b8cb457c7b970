"""A stub controller, and agents as real processes beside it."""

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.agent import stub
from tests.agent.stub import KEY, Stub

ENDS_WITHIN_S = 20.0


async def until(condition: Callable[[], Any], *, within_s: float = 15.0) -> Any:
    """Wait for a condition; return what made it true; fail when nothing does in time."""
    async with asyncio.timeout(within_s):
        while not (found := condition()):
            await asyncio.sleep(0.01)
        return found


def alive(mark: str) -> list[int]:
    """Return the processes whose environment holds `mark`, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(entry.name)
            environment = (entry / "environ").read_bytes()
            zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if mark.encode() in environment and not zombie:
                found.append(pid)
    return found


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def argv_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def resident_kb(pid: int) -> int:
    """Return the memory that the process holds now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def peak_kb(pid: int) -> int:
    """Return the most memory that the process ever held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


@attrs.define
class Agent:
    """A running `umbra-agent run`. Everything that it starts carries `mark`."""

    process: asyncio.subprocess.Process
    mark: str
    log_path: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        async with asyncio.timeout(ENDS_WITHIN_S):
            return await self.process.wait()

    def log(self) -> list[dict[str, Any]]:
        lines = self.log_path.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def events(self) -> list[str]:
        return [line["event"] for line in self.log()]

    def work(self) -> list[int]:
        """Return the processes of jobs, which carry a mark of their run as well."""
        return [pid for pid in alive(self.mark) if pid in alive("UMBRA_RUN=")]


@attrs.define
class Launcher:
    """Writes a configuration and starts agents with it."""

    controller: Stub
    folder: Path
    agents: list[Agent] = attrs.Factory(list)

    async def start(
        self,
        script: str = "cat",
        *flags: str,
        agent: str = "",
        handler: str = 'result = "stdout"',
        detector: str | None = None,
        kill_grace_s: float = 1,
        environment: dict[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> Agent:
        """Start an agent whose jobs of kind "work" run `script` in a shell.

        `detector` is another shell script, which stands for the detection of devices.
        """
        argv = json.dumps(["/bin/sh", "-c", script])
        config = self.folder / f"{uuid.uuid4().hex}.toml"
        config.write_text(
            f'[controller]\nurl = "{self.controller.url}"\n'
            f"[agent]\nkill_grace_s = {kill_grace_s}\n{agent}\n"
            f'[[handler]]\nkinds = ["work"]\nargv = {argv}\n{handler}\n'
        )
        if detector is None:
            told = ("umbra_agent", "run", "--config", str(config), *flags)
        else:
            told = ("tests.agent.detecting_by", str(config), detector)
        return await self.module(*told, environment=environment, stdin=stdin)

    async def run(self, *argv: str, environment: dict[str, str] | None = None) -> Agent:
        return await self.module("umbra_agent", *argv, environment=environment)

    async def module(
        self, *argv: str, environment: dict[str, str] | None = None, stdin: bytes | None = None
    ) -> Agent:
        name, value = "UMBRA_TEST_MARK", uuid.uuid4().hex
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("UMBRA_")}
        told = {"UMBRA_NODE_KEY": KEY} if environment is None else environment
        log_path = self.folder / f"{value}.log"
        with log_path.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *argv),
                stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**inherited, **told, name: value},
            )
        if stdin is not None and process.stdin is not None:
            process.stdin.write(stdin)
            process.stdin.close()
        started = Agent(process, f"{name}={value}", log_path)
        self.agents.append(started)
        return started


@pytest.fixture
async def controller() -> AsyncIterator[Stub]:
    async with stub.running() as running:
        yield running


@pytest.fixture
async def launcher(controller: Stub, tmp_path: Path) -> AsyncIterator[Launcher]:
    launching = Launcher(controller, tmp_path)
    yield launching
    for agent in launching.agents:
        if agent.process.returncode is None:
            with suppress(ProcessLookupError):
                agent.signal(signal.SIGCONT)
                agent.process.kill()
        await agent.ended()
        for pid in alive(agent.mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
