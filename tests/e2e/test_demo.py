"""`umbra-compute demo`, as a newcomer runs it, and what is left when it is stopped."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

DEMO = (sys.executable, "-m", "umbra_compute", "demo")
STARTS_WITHIN_S = 60.0
ENDS_WITHIN_S = 30.0
RUNS_WITHIN_S = 120.0


@attrs.define
class Demos:
    """Starts demos whose files are in `folder`; what a failed test leaves is killed after it."""

    folder: Path
    started: "list[subprocess.Popen[bytes]]" = attrs.Factory(list)

    def start(self, **pipes: int) -> "subprocess.Popen[bytes]":
        demo = subprocess.Popen(
            DEMO,
            stdin=pipes.get("stdin", subprocess.DEVNULL),
            stdout=pipes.get("stdout", subprocess.PIPE),
            stderr=pipes.get("stderr", subprocess.STDOUT),
            env={**os.environ, "TMPDIR": str(self.folder), "UMBRA_DSN": "postgresql://elsewhere"},
            start_new_session=True,
        )
        self.started.append(demo)
        return demo

    def living(self) -> list[str]:
        """Return the processes that have to do with these demos, the demos themselves too."""
        mark = os.fsencode(self.folder)
        return [path.name for path in Path("/proc").glob("[0-9]*") if mark in _told(path)]

    def leave_nothing(self) -> bool:
        return self.living() == [] and list(self.folder.iterdir()) == []


def _told(process: Path) -> bytes:
    """Its arguments and environment; nothing of one that has ended."""
    try:
        return (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def demos(scratch: Path) -> Iterator[Demos]:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    folder.chmod(0o711)  # as root the database runs as another account, which passes through
    made = Demos(folder)
    yield made
    for demo in made.started:
        demo.kill()
        demo.wait()
        if demo.stdout is not None:
            demo.stdout.close()
    until(lambda: made.living() == [], ENDS_WITHIN_S)
    shutil.rmtree(folder)


def until(condition: Callable[[], bool], within_s: float) -> None:
    ends_at = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


def read_until(fd: int, word: bytes) -> bytes:
    """Return what comes until the word does; fail when the other side ends before."""
    read = b""
    while word not in read:
        chunk = os.read(fd, 4096)
        assert chunk, read.decode()
        read += chunk
    return read


def test_it_completes_everything_although_an_agent_is_killed(demos: Demos) -> None:
    demo = demos.start()
    told = demo.communicate(timeout=RUNS_WITHIN_S)[0].decode()
    assert demo.returncode == 0, told
    assert "desk is killed with SIGKILL, in the middle of its work." in told
    assert "sections are analysed, each exactly once:" in told
    assert "all were back in the queue in" in told
    assert "all were done elsewhere in" in told
    assert demos.leave_nothing()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(demos: Demos, number: signal.Signals) -> None:
    demo = demos.start()
    assert demo.stdout is not None
    read_until(demo.stdout.fileno(), b"Submitted")
    assert len(demos.living()) > 4
    demo.send_signal(number)
    demo.communicate(timeout=ENDS_WITHIN_S)
    assert demo.returncode == 130
    assert demos.leave_nothing()


def test_ctrl_c_on_a_terminal_in_the_middle_of_the_picture(demos: Demos) -> None:
    ours, theirs = pty.openpty()
    demo = demos.start(stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    read_until(ours, b"rack")
    read_until(ours, "█".encode())
    demo.send_signal(signal.SIGINT)
    with open(ours, "rb", buffering=0) as terminal:
        try:
            while terminal.read(4096):
                pass
        except OSError:  # the other end is closed
            pass
    assert demo.wait(ENDS_WITHIN_S) == 130
    assert demos.leave_nothing()


def test_its_processes_end_when_it_is_killed_itself(demos: Demos) -> None:
    demo = demos.start()
    assert demo.stdout is not None
    read_until(demo.stdout.fileno(), b"Submitted")
    demo.kill()
    demo.wait()
    until(lambda: demos.living() == [], ENDS_WITHIN_S)


def test_whoever_stops_reading_ends_it(demos: Demos) -> None:
    demo = demos.start()
    assert demo.stdout is not None
    read_until(demo.stdout.fileno(), b"Three agents")
    demo.stdout.close()
    demo.wait(ENDS_WITHIN_S)
    assert demos.leave_nothing()
