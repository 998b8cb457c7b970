"""Runs `umbra-compute` as a process, as people and programs do."""

import asyncio
import os
import pty
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).parents[2]
LONG_S = 60.0  # for a machine that does much else; nothing waits for it when all is well


@attrs.frozen
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of ours but what is said here: no setting of whoever runs the tests."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("UMBRA_", "PG", "PYTHON"))}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **({} if more is None else more)}


async def start(
    *argv: str, env: Mapping[str, str] | None = None, **options: Any
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "umbra_compute", *argv), env=environment(env), **options
    )


async def umbra(*argv: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Ran:
    """Run a command to its end, in pipes."""
    process = await start(*argv, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(LONG_S):
        out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())


async def on_a_terminal(*argv: str, env: Mapping[str, str] | None = None) -> Ran:
    """Run a command on a terminal; `out` has what it shows, both streams together."""
    ours, theirs = pty.openpty()
    try:
        process = await start(
            *argv,
            env={"TERM": "xterm-256color", **({} if env is None else env)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    async with asyncio.timeout(LONG_S):
        shown = await asyncio.to_thread(_everything, ours)
        code = await process.wait()
    return Ran(code, shown.decode(), "")


def _everything(terminal: int) -> bytes:
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:  # Linux says so when the last process has closed the other end
        pass
    finally:
        os.close(terminal)
    return shown
