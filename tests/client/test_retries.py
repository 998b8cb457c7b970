"""What is asked again, and what is not: both clients against a controller that misbehaves."""

import socket
from collections.abc import AsyncIterator

import pytest

from tests.client import stub as stubbed
from tests.client.both import CLIENTS, Either
from tests.client.stub import KEY, Stub, hangs_up, job, leaves, nothing, refuses, says, text
from umbra_compute.client import ApiError, NotReachable, RefusedCredentials, calls, exchange

ID = str(job()["id"])


async def test_a_job_is_submitted_once_however_often_the_reply_is_lost(
    stub: Stub, client: Either
) -> None:
    stub.will(hangs_up, refuses(503, "database_unavailable", Retry_After="0"), says(job(), 201))
    assert (await client("submit", {"kind": "work"}))["id"] == ID
    first, *others = [seen.body for seen in stub.seen]
    assert others == [first, first]
    assert len(first["idempotency_key"]) == 36


async def test_a_key_that_was_given_is_kept(stub: Stub, client: Either) -> None:
    stub.will(says(job(), 201), says(job(), 201))
    await client("submit", {"kind": "work", "idempotency_key": "mine"})
    await client("submit", {"kind": "work", "idempotency_key": None})
    assert stub.seen[0].body["idempotency_key"] == "mine"
    assert stub.seen[1].body["idempotency_key"] is not None


async def test_a_batch_is_cut_into_calls_and_each_job_has_a_key(stub: Stub, client: Either) -> None:
    made = [{"id": str(n), "status": "queued", "created": True} for n in range(1500)]
    stub.will(hangs_up, says({"jobs": made[:1000]}, 201), says({"jobs": made[1000:]}, 201))
    told = await client("submit_batch", [{"kind": "work", "payload": n} for n in range(1500)])
    assert told == made
    sent = [seen.body["jobs"] for seen in stub.seen]
    assert [len(jobs) for jobs in sent] == [1000, 1000, 500]
    assert sent[0] == sent[1]
    keys = {one["idempotency_key"] for one in sent[0] + sent[2]}
    assert len(keys) == 1500


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("add_node", ("desk",)),
        ("add_node_key", (ID,)),
        ("add_key", ("a program", ["jobs:read"])),
        ("retire_node", (ID,)),
        ("delete_model", ("a/b",)),
    ],
)
@pytest.mark.parametrize("answer", [hangs_up, refuses(503, "database_unavailable")])
async def test_what_may_have_been_done_is_not_done_again(
    stub: Stub, client: Either, method: str, args: tuple[object, ...], answer: stubbed.Answer
) -> None:
    stub.will(answer)
    with pytest.raises(NotReachable):
        await client(method, *args)
    assert len(stub.seen) == 1


@pytest.mark.parametrize(
    ("method", "args"), [("revoke_key", (ID,)), ("revoke_node_key", (ID, ID)), ("cancel", (ID,))]
)
async def test_what_ends_something_for_good_is_done_again_until_it_is_heard(
    stub: Stub, client: Either, method: str, args: tuple[object, ...]
) -> None:
    stub.will(hangs_up, hangs_up, says({}))
    await client(method, *args)
    assert len(stub.seen) == 3


async def test_a_kept_connection_that_was_closed_loses_nothing(stub: Stub, client: Either) -> None:
    stub.will(leaves, says({"id": ID}, 201))
    await client("ready")
    await client("add_node", "desk")
    assert len(stub.seen) == 2


async def test_it_gives_up_after_a_few_attempts_and_says_why(stub: Stub, client: Either) -> None:
    stub.will(*[refuses(503, "database_unavailable", "The database is away.")] * 9)
    with pytest.raises(NotReachable, match=r"^The database is away\.$"):
        await client("queue")
    assert len(stub.seen) == exchange.ATTEMPTS


async def test_a_refusal_is_not_asked_again(stub: Stub, client: Either) -> None:
    stub.will(refuses(409, "idempotency_mismatch", "Used."))
    with pytest.raises(ApiError, match="Used") as refused:
        await client("submit", {"kind": "work"})
    assert refused.value.code == "idempotency_mismatch"
    assert len(stub.seen) == 1


async def test_too_many_requests_are_slowed_down(stub: Stub, client: Either) -> None:
    stub.will(refuses(429, "rate_limited", Retry_After="0"), says({"status": "ready"}))
    assert await client("ready") == {"status": "ready"}


async def test_a_bad_key_is_told_at_once_and_not_shown(stub: Stub, client: Either) -> None:
    stub.will(refuses(401, "unauthorized", "Send a valid key."))
    with pytest.raises(RefusedCredentials) as refused:
        await client("queue")
    assert stub.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in str(refused.value) + repr(refused.value)


async def test_a_redirect_does_not_get_the_key(stub: Stub, client: Either) -> None:
    stub.will(*[text("{}", 302, Location=f"{stub.url}/elsewhere")] * exchange.ATTEMPTS)
    with pytest.raises(NotReachable, match="no controller"):
        await client("queue")
    assert {seen.path for seen in stub.seen} == {"/v1/queue"}


async def test_an_empty_answer_is_enough_for_what_returns_nothing(
    stub: Stub, client: Either
) -> None:
    stub.will(nothing())
    await client("retire_node", ID)
    assert [(seen.method, seen.path) for seen in stub.seen] == [("DELETE", f"/v1/nodes/{ID}")]


@pytest.fixture(params=list(CLIENTS))
async def nowhere(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        either = Either(CLIENTS[request.param](f"http://127.0.0.1:{taken.getsockname()[1]}", KEY))
        yield either
        await either.close()


@pytest.mark.parametrize("call", [("queue",), ("add_node", "desk")])
async def test_nobody_there_is_said_in_a_sentence(nowhere: Either, call: tuple[str, ...]) -> None:
    with pytest.raises(NotReachable, match=r"does not answer \(.*refused.*\): is it running") as no:
        await nowhere(*call)
    assert not no.value.sent


async def test_waiting_asks_until_the_end(stub: Stub, client: Either) -> None:
    stub.will(says(job()), says(job("running")), says(job("complete", result=7)))
    assert (await client("wait", ID))["result"] == 7
    assert {seen.path for seen in stub.seen} == {f"/v1/jobs/{ID}?wait_s=30.0"}


@pytest.mark.parametrize("status", sorted(calls.TERMINAL))
async def test_each_way_to_end_ends_the_waiting(stub: Stub, client: Either, status: str) -> None:
    stub.will(says(job(status)))
    assert (await client("wait", ID))["status"] == status


async def test_a_blocked_job_has_not_ended(stub: Stub, client: Either) -> None:
    stub.will(says(job("blocked", blocked="nothing can run it")), says(job("complete")))
    assert (await client("wait", ID))["status"] == "complete"


async def test_waiting_ends_in_time_with_the_job_as_it_is(stub: Stub, client: Either) -> None:
    stub.will(*[says(job("running"))] * 9)
    assert (await client("wait", ID, within_s=0.0))["status"] == "running"
    assert [seen.path for seen in stub.seen] == [f"/v1/jobs/{ID}"]


async def test_waiting_outlasts_a_restart_of_the_controller(stub: Stub, client: Either) -> None:
    stub.will(says(job()), *[hangs_up] * 6, says(job("complete")))
    assert (await client("wait", ID))["status"] == "complete"


async def test_patience_ends(stub: Stub, client: Either) -> None:
    stub.will(*[hangs_up] * 9)
    with pytest.raises(NotReachable):
        await client("wait", ID, patience_s=0.0)


async def test_watching_tells_each_state(stub: Stub, client: Either) -> None:
    states = ("queued", "running", "complete")
    stub.will(*[says(job(status)) for status in states])
    told = await client("watch", ID, every_s=1.0)
    assert tuple(one["status"] for one in told) == states


async def test_pages_are_followed_to_the_last(stub: Stub, client: Either) -> None:
    stub.will(
        says({"jobs": [job(), job()], "next_cursor": "c/1"}),
        says({"jobs": [job()], "next_cursor": None}),
    )
    assert len(await client("jobs", status="queued", kind=None)) == 3
    assert [seen.path for seen in stub.seen] == [
        "/v1/jobs?status=queued&limit=500",
        "/v1/jobs?status=queued&limit=500&cursor=c%2F1",
    ]


async def test_a_limit_asks_for_no_more_than_it_wants(stub: Stub, client: Either) -> None:
    stub.will(
        says({"events": [{}] * 500, "next_cursor": "c"}), says({"events": [{}], "next_cursor": "d"})
    )
    assert len(await client("events", ID, limit=501)) == 501
    assert [seen.path for seen in stub.seen] == [
        f"/v1/jobs/{ID}/events?limit=500",
        f"/v1/jobs/{ID}/events?limit=1&cursor=c",
    ]


async def test_a_slug_with_a_slash_is_one_part_of_the_path(stub: Stub, client: Either) -> None:
    stub.will(says({}), nothing())
    await client("put_model", "org/llama3:8b q4", vram_min_mb=0)
    await client("delete_model", "../keys")
    assert [seen.path for seen in stub.seen] == [
        "/v1/models/org%2Fllama3%3A8b%20q4",
        "/v1/models/..%2Fkeys",
    ]
    assert stub.seen[0].body == {"vram_min_mb": 0}
