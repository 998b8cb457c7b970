"""People's commands against a real controller: what they print, and how they end."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.e2e.fleet import fleet

HEAVY = ("aiohttp", "asyncpg", "structlog", "rich", "argon2")


@attrs.frozen
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@attrs.frozen
class Shell:
    """Runs commands as a person would, with an admin key in the environment."""

    url: str
    dsn: str
    api_key: str

    async def run(self, *argv: str, stdin: str = "", **environment: str) -> Ran:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("UMBRA_")}
        own = {"UMBRA_URL": self.url, "UMBRA_API_KEY": self.api_key}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "umbra_compute", *argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**inherited, **own, **environment},
        )
        out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), err.decode())

    async def ok(self, *argv: str, **more: str) -> Ran:
        ran = await self.run(*argv, **more)
        assert ran.status == 0, ran.err
        return ran


@pytest.fixture
async def shell(tmp_path: Path, dsn: str) -> AsyncIterator[Shell]:
    async with fleet(tmp_path, dsn) as running:
        _, url = await running.controller()
        made = await running.command("init", "--org", "acme", "--dsn", dsn)
        assert set(made) == {"organization_id", "api_key"}
        yield Shell(url, dsn, made["api_key"])


async def test_the_way_of_a_job(shell: Shell) -> None:
    node = (await shell.ok("node", "add", "desk", "--locality", "attic", "--json")).json
    assert set(node) == {"id", "name", "node_key"}
    await shell.ok("model", "put", "org/llm:7b", "--vram", "0")
    job_id = (await shell.ok("job", "submit", "work", "--payload", '{"n": 0}')).out.strip()
    assert job_id in (await shell.ok("job", "list")).out
    shown = (await shell.ok("job", "show", job_id, "--json")).json
    assert (shown["payload"], shown["status"]) == ({"n": 0}, "queued")
    assert (await shell.ok("queue", "--json")).json["queued"] == 1
    assert "desk" in (await shell.ok("node", "list")).out
    await shell.ok("node", "drain", "desk")
    assert "draining" in (await shell.ok("node", "show", node["id"])).out
    await shell.ok("job", "cancel", job_id)
    watched = await shell.run("job", "watch", job_id)
    assert watched.status == 1
    assert "cancelled" in watched.err
    await shell.ok("node", "retire", "desk")
    assert (await shell.ok("model", "list", "--json")).json["models"][0]["slug"] == "org/llm:7b"
    await shell.ok("model", "rm", "org/llm:7b")


async def test_the_operators_commands_work_on_the_database(shell: Shell) -> None:
    place = ("--dsn", shell.dsn)
    made = (await shell.ok("org", "add", "other", "--json", *place)).json
    assert set(made) == {"id", "name"}
    key = await shell.ok(
        "key", "add", "--name", "ci", "--scopes", "jobs:read", "--org", "other", "--json", *place
    )
    assert set(key.json) == {"id", "api_key"}
    assert (await shell.ok("queue", "--json", UMBRA_API_KEY=key.json["api_key"])).json[
        "queued"
    ] == 0
    assert (await shell.ok("migrate", "--check", *place)).status == 0
    again = await shell.run("init", "--org", "other", *place)
    assert again.status == 1
    assert len(again.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("argv", "environment", "status"),
    [
        (("queue",), {"UMBRA_API_KEY": "umk_wrong"}, 4),
        (("queue",), {"UMBRA_API_KEY": ""}, 3),
        (("queue",), {"UMBRA_URL": "http://127.0.0.1:1"}, 5),
        (("queue",), {"UMBRA_URL": "http://example.org"}, 3),
        (("queue", "--frob"), {}, 2),
        (("frob",), {}, 2),
        (("job", "submit", "work", "--payload", "{"), {}, 2),
        (("job", "show", "no-such-job"), {}, 1),
        (("node", "show", "nobody"), {}, 1),
        (("migrate", "--dsn", "postgresql://127.0.0.1:1/x"), {}, 5),
        (("serve", "--listen", "nonsense"), {}, 3),
        (("serve", "--pool-size", "0"), {}, 3),
        (("serve", "--config", "/nowhere.toml"), {}, 3),
    ],
)
async def test_every_failure_has_its_status_and_one_clear_answer(
    shell: Shell, argv: tuple[str, ...], environment: dict[str, str], status: int
) -> None:
    ran = await shell.run(*argv, **environment)
    assert ran.status == status, ran.err
    assert ran.err.strip()
    assert "Traceback" not in ran.err
    assert shell.api_key not in ran.err + ran.out


async def test_the_doctor_finds_what_is_wrong(shell: Shell) -> None:
    sick = await shell.run("doctor", "--dsn", shell.dsn)
    assert sick.status == 1
    assert "node add" in sick.out
    assert "postgresql" in sick.out


def test_help_loads_nothing_that_it_does_not_need() -> None:
    script = (
        "import sys\nfrom umbra_compute.cli import run\nsys.argv = ['umbra-compute', '--help']\n"
        f"run()\nprint([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert "serve" in ran.stdout
