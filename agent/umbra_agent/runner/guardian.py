"""Ends what the agent left running when it was killed.

Started with the agent and holding one end of a pipe to it: the pipe closes when the agent ends,
however it ends. Then every process that carries the agent's mark is killed, and the folder that
its jobs worked in is removed.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from umbra_agent.runner import tree

ENDING_S: Final = 5.0
_POLL_S: Final = 0.02


def start(mark: str, folder: Path, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start the guardian of this agent; it lives until this process ends."""
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "umbra_agent.runner.guardian", mark, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what ends the agent's group does not end its guardian
        env=environment,
    )


def watch(mark: str, folder: Path) -> None:
    """Wait for the agent's end, then clear away what it left."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(sys.stdin.fileno(), 1024):
        pass  # the agent says nothing; its silence ends with it
    deadline = time.monotonic() + ENDING_S
    while tree.signal_all(mark, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    watch(sys.argv[1], Path(sys.argv[2]))
