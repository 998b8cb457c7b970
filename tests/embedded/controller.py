"""What a controller does with the embedded server, in a process that a test can kill.

python -m tests.embedded.controller keeps|passes DATA_DIR [PROGRAMS]

It says "here", waits for a line, starts the server, says how to reach it, and stops it when its
input ends. With PROGRAMS it is an ordinary user, whose wheel lies there, and not root.
"""

import json
import os
import pwd
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from umbra_compute import embedded
from umbra_compute.config import ConfigurationError
from umbra_compute.embedded import programs
from umbra_compute.embedded.programs import Programs


def main(mode: str, data_dir: Path, wheel: Path | None) -> None:
    if wheel is not None:
        _become_ordinary(wheel)
    _say("here")
    sys.stdin.readline()
    try:
        with (_kept if mode == "keeps" else embedded.database)(data_dir) as dsn:
            _say(dsn)
            sys.stdin.read()
    except ConfigurationError as exc:
        _say(f"refused: {exc}")


@contextmanager
def _kept(data_dir: Path) -> Iterator[str]:
    server = embedded.start(data_dir)
    try:
        yield server.dsn
    finally:
        server.stop()


def _become_ordinary(wheel: Path) -> None:
    # The interpreter may lie where only root can execute it, so root starts it and steps down.
    version = programs.installed().version
    programs.installed = lambda: Programs(wheel, version)
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def _say(text: str) -> None:
    sys.stdout.write(json.dumps(text) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None)
