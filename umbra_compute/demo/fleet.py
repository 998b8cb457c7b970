"""The demo's processes: real ones, which end with it whatever ends it."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from umbra_compute.cli.exits import Failed
from umbra_compute.client import Client

END_S: Final = 15.0
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_ANNOUNCED: Final = re.compile(r"Listening on (\S+)")

CONFIG: Final = """\
[controller]
url = "{url}"
[agent]
max_jobs = {max_jobs}
lease_seconds = {lease_seconds}
drain_s = 5
[[handler]]
kinds = ["section.analyse"]
type = "command"
argv = {argv}
"""


@attrs.frozen
class Machine:
    """A node of the demo and the agent that runs on it."""

    name: str
    node_id: str
    max_jobs: int
    agent: "subprocess.Popen[bytes]"


@attrs.define
class Fleet:
    """A controller with a database of its own, and agents. Ended and removed by `running`."""

    folder: Path
    url: str
    client: Client
    machines: list[Machine] = attrs.Factory(list)
    _processes: "list[subprocess.Popen[bytes]]" = attrs.Factory(list)

    def add(self, name: str, *, max_jobs: int, lease_seconds: int) -> Machine:
        """Enrol a node and start its agent, whose key goes through a pipe."""
        node = self.client.add_node(name)
        key = self.client.add_node_key(node["id"])["node_key"]
        config = self.folder / f"{name}.toml"
        config.write_text(
            CONFIG.format(
                url=self.url,
                max_jobs=max_jobs,
                lease_seconds=lease_seconds,
                argv=json.dumps([sys.executable, "-m", "umbra_compute.demo.analyse"]),
            )
        )
        command = [_program("umbra-agent"), "run", "--config", str(config), "--node-key-stdin"]
        agent = _start(command, self.folder / f"{name}.log", stdin=subprocess.PIPE)
        self._processes.append(agent)
        if agent.stdin is None:
            raise AssertionError("the agent was started with a pipe")
        agent.stdin.write(key.encode() + b"\n")
        agent.stdin.close()
        machine = Machine(name, node["id"], max_jobs, agent)
        self.machines.append(machine)
        return machine

    def end(self) -> None:
        """Stop the agents; those that do not stop in time are killed."""
        for process in self._processes:
            _end(process)


@contextmanager
def running() -> Iterator[Fleet]:
    """Start a controller and yield the fleet to be; leave nothing behind."""
    folder = Path(tempfile.mkdtemp(prefix="umbra-demo-"))
    folder.chmod(0o711)  # as root the database runs as another account, which passes through
    controller = _start(
        [*_controller(), "serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")],
        folder / "controller.log",
        stdout=subprocess.PIPE,
    )
    fleet: Fleet | None = None
    try:
        url = _announced(controller, folder)
        with Client(url, _admin_key(folder)) as client:
            fleet = Fleet(folder, url, client)
            yield fleet
    finally:
        if fleet is not None:
            fleet.end()
        _end(controller)
        shutil.rmtree(folder, ignore_errors=True)


def _announced(controller: "subprocess.Popen[bytes]", folder: Path) -> str:
    if controller.stdout is None:
        raise AssertionError("the controller was started with a pipe")
    line = controller.stdout.readline().decode()
    found = _ANNOUNCED.search(line)
    if found is None:
        log = (folder / "controller.log").read_text(errors="replace").strip().splitlines()
        raise Failed(f"The controller did not start: {log[-1] if log else 'it says nothing'}")
    return found[1]


def _admin_key(folder: Path) -> str:
    made = subprocess.run(  # noqa: S603
        [*_controller(), "init", "--org", "demo", "--json", "--data-dir", str(folder / "data")],
        capture_output=True,
        check=False,
        env=_environment(),
    )
    if made.returncode != 0:
        raise Failed(f"init failed: {made.stderr.decode(errors='replace').strip()}")
    return str(json.loads(made.stdout)["api_key"])


def _controller() -> list[str]:
    return [sys.executable, "-m", "umbra_compute"]


def _program(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise Failed(
            f"The demo needs {name}: install the distribution umbra-agent beside this one."
        )
    return found


def _start(command: list[str], log: Path, **pipes: Any) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603
            command,
            stdin=pipes.get("stdin", subprocess.DEVNULL),
            stdout=pipes.get("stdout", output),
            stderr=output,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the demo, which ends them in order
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - it only makes a system call
        )


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _environment() -> dict[str, str]:
    """The caller's, without what points at another installation."""
    return {name: value for name, value in os.environ.items() if not name.startswith("UMBRA_")}


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
