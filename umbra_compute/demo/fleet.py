"""The demo's processes: real ones, which end with it whatever ends it."""

import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from umbra_compute.cli.exits import Failed
from umbra_compute.client import Client
from umbra_compute.demo.interrupts import Interrupts

START_S: Final = 60.0  # of a controller that makes its database: 1 s, on a slow disk more
END_S: Final = 15.0  # a controller stops in 10 s, an agent in drain_s and its kill grace
REMOVE_S: Final = 5.0
HEARTBEAT_S: Final = 1  # so that a machine which died is seen as offline
STALE_S: Final = 5
_POLL_S: Final = 0.05
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_ANNOUNCED: Final = re.compile(rb"Listening on (\S+)")

CONFIG: Final = """\
[controller]
url = "{url}"
[agent]
max_jobs = {max_jobs}
lease_seconds = {lease_seconds}
drain_s = 2
kill_grace_s = 1
work_dir = {work_dir}
[[handler]]
kinds = ["section.analyse"]
type = "command"
argv = {argv}
"""


@attrs.frozen
class Site:
    """Where the controller answers, and a client that may do everything there."""

    url: str
    client: Client


@attrs.frozen
class Machine:
    """A node of the demo and the agent that runs on it."""

    name: str
    node_id: str
    agent: "subprocess.Popen[bytes]"


@attrs.define
class Fleet:
    """A controller with a database of its own, and agents, all in one folder."""

    folder: Path
    _interrupts: Interrupts
    machines: list[Machine] = attrs.Factory(list)
    _processes: "dict[str, subprocess.Popen[bytes]]" = attrs.Factory(dict)

    def serve(self) -> Site:
        """Start the controller and make its first organization."""
        data_dir = ("--data-dir", str(self.folder / "data"))
        rhythm = ("--heartbeat-interval-s", str(HEARTBEAT_S), "--heartbeat-stale-s", str(STALE_S))
        command = [*_controller(), "serve", "--listen", "127.0.0.1:0", *data_dir, *rhythm]
        controller = self._start("controller", command, stdout=subprocess.PIPE)
        url = self._announced(controller)
        made = subprocess.run(  # noqa: S603
            [*_controller(), "init", "--org", "demo", "--json", *data_dir],
            capture_output=True,
            check=False,
            env=_environment(),
        )
        if made.returncode != 0:
            raise Failed(f"init failed: {made.stderr.decode(errors='replace').strip()}")
        return Site(url, Client(url, json.loads(made.stdout)["api_key"]))

    def add(self, site: Site, name: str, *, max_jobs: int, lease_seconds: int) -> None:
        """Enrol a node and start its agent, whose key goes through a pipe."""
        node = site.client.add_node(name)
        key = site.client.add_node_key(node["id"])["node_key"]
        config = self.folder / f"{name}.toml"
        config.write_text(
            CONFIG.format(
                url=site.url,
                max_jobs=max_jobs,
                lease_seconds=lease_seconds,
                work_dir=json.dumps(str(self.folder / f"{name}.work")),
                argv=json.dumps([sys.executable, "-m", "umbra_compute.demo.analyse"]),
            )
        )
        command = [_program("umbra-agent"), "run", "--config", str(config), "--node-key-stdin"]
        agent = self._start(name, command, stdin=subprocess.PIPE)
        if agent.stdin is None:
            raise AssertionError("the agent was started with a pipe")
        agent.stdin.write(key.encode() + b"\n")
        agent.stdin.close()
        self.machines.append(Machine(name, node["id"], agent))

    def check(self, *, but: Machine | None) -> None:
        """Raise Failed if a process ended that nobody killed."""
        for name, process in self._processes.items():
            if process.poll() is not None and (but is None or name != but.name):
                raise Failed(f"{name} ended by itself: {self._last_words(name)}")

    def end(self) -> None:
        """Stop the agents, then the controller, and remove the folder. To be called once."""
        with self._interrupts.held():
            started = list(self._processes.values())
            for processes in (started[1:], started[:1]):
                for process in processes:
                    _ask_to_stop(process)
                for process in processes:
                    _await_end(process)
            _remove(self.folder)

    def _start(self, name: str, command: list[str], **pipes: int) -> "subprocess.Popen[bytes]":
        with self._interrupts.held(), (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603
                command,
                stdin=pipes.get("stdin", subprocess.DEVNULL),
                stdout=pipes.get("stdout", log),
                stderr=log,
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for the demo, which ends them in order
                preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - two system calls, no more
            )
            self._processes[name] = process
        return process

    def _announced(self, controller: "subprocess.Popen[bytes]") -> str:
        if controller.stdout is None:
            raise AssertionError("the controller was started with a pipe")
        ready, _, _ = select.select([controller.stdout], [], [], START_S)
        found = _ANNOUNCED.search(controller.stdout.readline()) if ready else None
        if found is None:
            raise Failed(f"The controller did not start: {self._last_words('controller')}")
        return found[1].decode()

    def _last_words(self, name: str) -> str:
        said = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
        errors = [line for line in said if '"error"' in line]
        told = errors if errors else said
        return told[-1] if told else "it says nothing"


@contextmanager
def running(interrupts: Interrupts) -> Iterator[Fleet]:
    """Yield a fleet to be started; leave nothing behind."""
    fleet: Fleet | None = None
    try:
        with interrupts.held():
            folder = Path(tempfile.mkdtemp(prefix="umbra-demo-"))
            fleet = Fleet(folder, interrupts)
            folder.chmod(0o711)  # as root the database runs as another account: it passes through
        yield fleet
    finally:
        if fleet is not None:
            fleet.end()


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


def _environment() -> dict[str, str]:
    """The caller's, without what points at another installation."""
    return {name: value for name, value in os.environ.items() if not name.startswith("UMBRA_")}


def _die_with(parent: int) -> Callable[[], None] | None:
    """Return what the child does before it executes the program: whatever ends us ends it."""
    if sys.platform != "linux":
        return None
    prctl: Any = ctypes.CDLL(None, use_errno=True).prctl

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before the call above could know
            os._exit(1)

    return in_child


def _ask_to_stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
        process.send_signal(signal.SIGCONT)  # one that is stopped does not hear it


def _await_end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _remove(folder: Path) -> None:
    """Remove it, also while the last of what was killed still writes there."""
    ends_at = time.monotonic() + REMOVE_S
    while folder.exists():
        late = time.monotonic() > ends_at
        shutil.rmtree(folder, ignore_errors=not late)  # at last it says what stands in the way
        time.sleep(_POLL_S)
