"""What people see on a terminal, what a pipe gets, and what programs get."""

import asyncio
import json
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any

import pytest
from aiohttp import web

from tests.cli.process import LONG_S, on_a_terminal, start, umbra
from tests.client.stub import KEY, Stub, job, nothing, says

ID = str(job()["id"])
ESCAPE = "\x1b"


def node(name: str = "desk", **fields: Any) -> dict[str, Any]:
    return {
        "id": "01a23215-8116-773f-9f6b-21023c6ec0d7",
        "name": name,
        "status": "online",
        "running_jobs": 0,
        "max_jobs": 1,
        "trust_domain": "local",
        "last_heartbeat_at": None,
        "devices": [],
        **fields,
    }


def page(name: str, *rows: dict[str, Any]) -> dict[str, Any]:
    return {name: list(rows), "next_cursor": None}


async def test_a_pipe_gets_plain_columns(stub: Stub, caller: dict[str, str]) -> None:
    stub.will(says(page("jobs", job(error="it\tbroke\nhere"))))
    ran = await umbra("job", "list", env=caller)
    head, line = ran.out.splitlines()
    assert head == "ID\tKIND\tSTATUS\tATTEMPT\tNODE\tAGE\tERROR"
    assert re.fullmatch(rf"{ID}\twork\tqueued\t0/3\t-\t\d+d\tit broke here", line)
    assert ran.err == ""


async def test_a_terminal_gets_a_table_with_colours(stub: Stub, caller: dict[str, str]) -> None:
    stub.will(says(page("jobs", job("failed", error="it broke"))))
    ran = await on_a_terminal("job", "list", env=caller)
    assert ran.code == 0
    assert f"{ESCAPE}[31mfailed" in ran.out
    assert ID in ran.out
    assert "\t" not in ran.out


async def test_colours_are_not_for_those_who_want_none(stub: Stub, caller: dict[str, str]) -> None:
    stub.will(says(page("jobs", job("failed"))))
    ran = await on_a_terminal("job", "list", env={**caller, "NO_COLOR": "1"})
    assert "[31m" not in ran.out


async def test_an_id_is_never_cut_off(stub: Stub, caller: dict[str, str]) -> None:
    stub.will(says(page("nodes", node("n" * 60))))
    ran = await on_a_terminal("node", "list", env={**caller, "COLUMNS": "60"})
    shown = re.sub(r"\s|\x1b\[[0-9;]*m", "", ran.out)
    assert "…" not in shown


MISCHIEF = f"{ESCAPE}]0;title\a{ESCAPE}[2J\x9b31m\u202egnp.exe"


@pytest.mark.parametrize("see", [umbra, on_a_terminal])
async def test_what_a_node_said_does_not_move_the_cursor(
    stub: Stub, caller: dict[str, str], see: Any
) -> None:
    stub.will(*[says(page("jobs", job("failed", error=MISCHIEF)))] * 2)
    for argv in (("job", "list"), ("job", "list", "--json")):
        ran = await see(*argv, env=caller)
        assert not re.search("\x1b\\][^\n]|\x1b\\[2J|\x07|\x9b|\u202e", ran.out)


@pytest.mark.parametrize("see", [umbra, on_a_terminal])
async def test_nor_does_it_in_the_sentence_about_its_end(
    stub: Stub, caller: dict[str, str], see: Any
) -> None:
    told = job("failed", error=f"first {MISCHIEF}\nsecond" + "x" * 20_000)
    stub.will(says(told))
    ran = await see("job", "watch", ID, env=caller)
    assert ran.code == 1
    assert not re.search("\x1b\\]|\x1b\\[2J|\x07|\x9b|\u202e", ran.out + ran.err)
    assert "second" in ran.out + ran.err
    assert len(ran.err) < 1000


async def test_json_is_what_the_controller_said(stub: Stub, caller: dict[str, str]) -> None:
    told = page("jobs", job(payload={"text": MISCHIEF, "emoji": "🦊"}, a_newer_field=1))
    stub.will(says(told))
    ran = await umbra("job", "list", "--json", env=caller)
    assert json.loads(ran.out) == {"jobs": told["jobs"]}
    assert "🦊" in ran.out
    assert ran.err == ""


async def test_nothing_found_leaves_the_pipe_empty(stub: Stub, caller: dict[str, str]) -> None:
    stub.will(says(page("nodes")))
    ran = await umbra("node", "list", env=caller)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "There is no node: umbra-compute node add NAME.\n"


async def test_a_reader_who_has_enough_gets_no_traceback(
    stub: Stub, caller: dict[str, str]
) -> None:
    stub.will(says(page("jobs", *[job()] * 2000)))
    process = await start("job", "list", env=caller, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    await process.stdout.readline()
    process.stdout._transport.close()  # type: ignore[attr-defined]
    async with asyncio.timeout(LONG_S):
        assert await process.stderr.read() == b""
        assert await process.wait() == 1


async def test_nor_does_one_who_left_before_the_first_line(
    stub: Stub, caller: dict[str, str]
) -> None:
    stub.will(says(page("jobs", job())))
    reader, writer = os.pipe()
    os.close(reader)
    process = await start("job", "list", env=caller, stdout=writer, stderr=PIPE)
    os.close(writer)
    async with asyncio.timeout(LONG_S):
        _, told = await process.communicate()
    assert (process.returncode, told) == (1, b"")


async def test_an_interrupt_ends_a_command_without_a_word(
    stub: Stub, caller: dict[str, str]
) -> None:
    asked = asyncio.Event()

    async def waits(_: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.sleep(LONG_S)
        raise AssertionError("the command should have ended")

    stub.will(waits)
    process = await start("job", "watch", ID, env=caller, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(LONG_S):
        await asked.wait()
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


async def test_watching_shows_each_change_once_in_a_pipe(
    stub: Stub, caller: dict[str, str]
) -> None:
    running = job(
        "running",
        attempt=2,
        placement={"node_name": "desk"},
        progress={"fraction": 0.5, "message": "page\n7"},
    )
    stub.will(says(job()), says(running), says(running), says(job("complete", result={"n": 0})))
    ran = await umbra("job", "watch", ID, env=caller)
    assert (ran.code, json.loads(ran.out)) == (0, {"n": 0})
    assert ran.err.splitlines() == [
        "queued",
        "running  on desk  attempt 2/3  50%  page 7",
        "complete",
    ]


async def test_watching_keeps_one_line_alive_on_a_terminal(
    stub: Stub, caller: dict[str, str]
) -> None:
    stub.will(says(job(blocked="b" * 300)), says(job("complete", result=0)))
    ran = await on_a_terminal("job", "watch", ID, env={**caller, "COLUMNS": "80"})
    lines = ran.out.replace("\r\n", "\n").split("\n")
    assert lines[0].count("\r\033[K") == 2
    assert max(len(part) for part in lines[0].split("\r\033[K")) < 80
    assert lines[1:] == ["0", ""]


async def test_watching_as_a_program_gets_the_job_and_no_lines(
    stub: Stub, caller: dict[str, str]
) -> None:
    stub.will(says(job()), says(job("partial")))
    ran = await umbra("job", "watch", ID, "--json", env=caller)
    assert ran.code == 1
    assert json.loads(ran.out)["status"] == "partial"
    assert ran.err == f"Job {ID} is partial\n"


async def test_a_new_key_is_shown_to_whoever_asked_and_nowhere_else(
    stub: Stub, caller: dict[str, str]
) -> None:
    made = {"id": ID, "node_key": KEY.replace("umk", "umn")}
    stub.will(says(node(), 201), says(made, 201))
    ran = await on_a_terminal("node", "add", "desk", env=caller)
    assert made["node_key"] in ran.out
    assert stub.seen[1].body == {}
    stub.will(says(node(), 201), says(made, 201))
    ran = await umbra("node", "add", "desk", "--scopes", "compute:read", "--json", env=caller)
    assert json.loads(ran.out) == {"id": node()["id"], "name": "desk", "node_key": made["node_key"]}
    assert stub.seen[3].body == {"scopes": ["compute:read"]}
    assert ran.err == ""


async def test_what_is_done_is_said_to_people_and_programs(
    stub: Stub, caller: dict[str, str]
) -> None:
    stub.will(nothing(), nothing())
    ran = await umbra("model", "rm", "a/b", env=caller)
    assert (ran.out, ran.err) == ("", "Forgot a/b.\n")
    ran = await umbra("model", "rm", "a/b", "--json", env=caller)
    assert (json.loads(ran.out), ran.err) == ({"slug": "a/b"}, "")
