"""What commands ask of the controller."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import umbra
from tests.cli.test_output import ID, node, page
from tests.client.stub import Stub, job, nothing, refuses, says

NODE = str(node()["id"])


async def submitted(
    stub: Stub, caller: dict[str, str], *argv: str, stdin: str = ""
) -> dict[str, Any]:
    stub.will(says(job(), 201))
    ran = await umbra("job", "submit", "work", *argv, env=caller, stdin=stdin)
    assert (ran.code, ran.out, ran.err) == (0, f"{ID}\n", "")
    body: dict[str, Any] = stub.seen[-1].body
    return body


async def test_a_job_says_only_what_was_said(stub: Stub, caller: dict[str, str]) -> None:
    body = await submitted(stub, caller)
    assert body.pop("idempotency_key")
    assert body == {"kind": "work", "payload": None, "requires": {}}


async def test_every_flag_of_a_job_has_its_field(stub: Stub, caller: dict[str, str]) -> None:
    body = await submitted(
        stub,
        caller,
        *("--payload", '{"n": 0}', "--requires", '{"trust_domains": ["office"]}'),
        *("--vram", "0", "--ram", "7", "--model", "org/a:8b", "--model", "b"),
        *("--accelerator", "cuda", "--max-runtime", "60", "--priority", "0", "--delay", "0"),
        *("--start-by", "9", "--max-attempts", "1", "--idempotency-key", "k", "--project", "p"),
    )
    assert body == {
        "kind": "work",
        "payload": {"n": 0},
        "requires": {
            "trust_domains": ["office"],
            "vram_min_mb": 0,
            "ram_min_mb": 7,
            "models": ["org/a:8b", "b"],
            "accelerators": ["cuda"],
            "max_runtime_s": 60,
        },
        "priority": 0,
        "delay_s": 0.0,
        "start_by_s": 9.0,
        "max_attempts": 1,
        "idempotency_key": "k",
        "project_id": "p",
    }


@pytest.mark.parametrize("value", ["0", "null", '"text"', "[1]", "false"])
async def test_a_payload_is_any_json_from_anywhere(
    stub: Stub, caller: dict[str, str], tmp_path: Path, value: str
) -> None:
    file = tmp_path / "payload.json"
    file.write_text(value)
    sent = [
        await submitted(stub, caller, "--payload", value),
        await submitted(stub, caller, "--payload-file", str(file)),
        await submitted(stub, caller, "--payload-file", "-", stdin=value),
    ]
    assert len({str(body["payload"]) for body in sent}) == 1


@pytest.mark.parametrize(
    "argv",
    [
        ("--payload", "{"),
        ("--payload-file", "/nowhere.json"),
        ("--payload", "1", "--payload-file", "-"),
        ("--requires", "[]"),
        ("--requires", "nonsense"),
        ("--vram", "much"),
        ("--priority", "1.5"),
    ],
)
async def test_a_job_that_cannot_be_meant_is_not_sent(
    stub: Stub, caller: dict[str, str], argv: tuple[str, ...]
) -> None:
    ran = await umbra("job", "submit", "work", *argv, env=caller)
    assert (ran.code, ran.out, stub.seen) == (2, "", [])
    assert "Error: " in ran.err


async def test_submitting_and_waiting_prints_the_result(stub: Stub, caller: dict[str, str]) -> None:
    stub.will(says(job(), 201), says(job("running")), says(job("complete", result={"n": 0})))
    ran = await umbra("job", "submit", "work", "--wait", env=caller)
    assert (ran.code, ran.out, ran.err) == (0, '{"n": 0}\n', "")
    stub.will(says(job(), 201), says(job("failed", error="it broke")))
    ran = await umbra("job", "submit", "work", "--wait", env=caller)
    assert (ran.code, ran.out, ran.err) == (1, "", f"Job {ID} is failed: it broke\n")


async def test_a_node_goes_by_its_name_or_its_id(stub: Stub, caller: dict[str, str]) -> None:
    listed = says(page("nodes", node("other", id=ID), node()))
    stub.will(listed, says(node(status="draining")), says(node(status="offline")))
    assert (await umbra("node", "drain", "desk", env=caller)).code == 0
    assert (await umbra("node", "resume", NODE, env=caller)).code == 0
    assert [(seen.method, seen.path, seen.body) for seen in stub.seen] == [
        ("GET", "/v1/nodes?limit=500", None),
        ("PATCH", f"/v1/nodes/{NODE}", {"status": "draining"}),
        ("PATCH", f"/v1/nodes/{NODE}", {"status": "offline"}),
    ]


async def test_jobs_are_listed_by_the_name_of_their_node(
    stub: Stub, caller: dict[str, str]
) -> None:
    stub.will(says(page("nodes", node())), says(page("jobs")))
    ran = await umbra("job", "list", "--node", "desk", "--limit", "3", env=caller)
    assert ran.code == 0
    assert stub.seen[1].path == f"/v1/jobs?node_id={NODE}&limit=3"


async def test_a_name_that_nobody_has_is_said(stub: Stub, caller: dict[str, str]) -> None:
    stub.will(says(page("nodes", node())))
    ran = await umbra("node", "retire", "desc", env=caller)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "There is no node desc: umbra-compute node list shows them.\n"


async def test_a_scope_that_is_none_is_named_before_anything_is_made(
    stub: Stub, caller: dict[str, str]
) -> None:
    ran = await umbra("node", "add", "desk", "--scopes", "compute:read,compute", env=caller)
    assert (ran.code, stub.seen) == (2, [])
    assert "no scope 'compute'; there are compute:read, " in ran.err
    ran = await umbra("key", "add", "--name", "n", "--scopes", ",", env=caller)
    assert (ran.code, stub.seen) == (2, [])


async def test_a_node_that_got_no_key_is_not_lost(stub: Stub, caller: dict[str, str]) -> None:
    stub.will(says(node(), 201), refuses(503, "database_unavailable", "The database is away."))
    ran = await umbra("node", "add", "desk", env=caller)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "desk is enrolled but has no key: umbra-compute node key add desk. The database is away.\n"
    )


async def test_a_model_keeps_what_is_zero_and_leaves_out_what_is_not_known(
    stub: Stub, caller: dict[str, str]
) -> None:
    stub.will(says({"slug": "org/a:8b"}, 201))
    ran = await umbra(
        *("model", "put", "org/a:8b", "--vram", "0", "--load-seconds", "0"), env=caller
    )
    assert ran.code == 0
    assert stub.seen[0].path == "/v1/models/org%2Fa%3A8b"
    assert stub.seen[0].body == {"vram_min_mb": 0, "load_seconds": 0.0}


@pytest.mark.parametrize(
    ("argv", "method", "path"),
    [
        (("key", "revoke", ID), "DELETE", f"/v1/keys/{ID}"),
        (("node", "retire", NODE), "DELETE", f"/v1/nodes/{NODE}"),
        (("node", "key", "revoke", NODE, ID), "DELETE", f"/v1/nodes/{NODE}/credentials/{ID}"),
    ],
)
async def test_what_is_ended_is_named_once(
    stub: Stub, caller: dict[str, str], argv: tuple[str, ...], method: str, path: str
) -> None:
    if argv[:2] == ("node", "retire"):
        stub.will(says(node()))
    stub.will(nothing())
    assert (await umbra(*argv, env=caller)).code == 0
    assert (stub.seen[-1].method, stub.seen[-1].path) == (method, path)
