"""The routes of submitters."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from tests.http.badinput import assert_refused, variants
from tests.http.conftest import Caller, Client, Keys
from tests.http.work import Work, work
from umbra_compute.http import wire
from umbra_compute.http.wire_jobs import BatchBody, JobBody
from umbra_compute.model.caller import ApiScope

__all__ = ["work"]

WHOLE: dict[str, Any] = {
    "kind": "chapter.analyse",
    "payload": {"text": "snow ☃", "n": [0, 1.5, None]},
    "project_id": "book",
    "lang": "en",
    "requested_by": "anna",
    "priority": 0,
    "requires": {
        "vram_min_mb": 0,
        "ram_min_mb": 10,
        "models": ["b/x", "a:1", "a:1"],
        "trust_domains": ["local"],
        "accelerators": ["cuda"],
        "max_runtime_s": 60,
    },
    "prefer": {"node": "desk", "locality": "attic"},
    "start_by_s": 60,
    "max_attempts": 1,
    "idempotency_key": "k1",
}
BATCH = {"jobs": [WHOLE]}


async def test_a_submission_comes_back_as_it_was_meant(work: Work) -> None:
    job = await work.api("POST", "/v1/jobs", WHOLE)
    assert job["http"] == 201
    for name in ("kind", "payload", "project_id", "lang", "requested_by", "priority", "prefer"):
        assert job[name] == WHOLE[name]
    assert job["requires"] == {**WHOLE["requires"], "models": ["a:1", "b/x"]}
    assert (job["status"], job["attempt"], job["max_attempts"]) == ("queued", 0, 1)
    nothing_yet = ("lease_id", "result", "error", "started_at", "placement", "parent_job_id")
    assert [job[name] for name in nothing_yet] == [None] * 6
    assert job["created_at"].endswith("Z")
    assert len(job["created_at"]) == len("2026-01-02T03:04:05.000006Z")
    assert await work.api("GET", f"/v1/jobs/{job['id']}") == {**job, "http": 200}


async def test_defaults_are_those_of_the_contract(work: Work) -> None:
    job = await work.api("POST", "/v1/jobs", {"kind": "work"})
    assert (job["priority"], job["max_attempts"], job["payload"]) == (100, 3, None)
    assert (job["requires"], job["prefer"], job["requested_by"]) == ({}, {}, "admin")


async def test_the_older_spelling_is_read_and_two_values_are_an_error(work: Work) -> None:
    older = {"kind": "work", "requires": {"min_vram_mb": 5, "min_ram_mb": 6}}
    job = await work.api("POST", "/v1/jobs", older)
    assert job["requires"] == {"vram_min_mb": 5, "ram_min_mb": 6}
    both = {"kind": "work", "requires": {"min_vram_mb": 5, "vram_min_mb": 6}, "delay_s": 1,
            "not_before": "2027-01-01T00:00:00Z"}  # fmt: skip
    refused = await work.api("POST", "/v1/jobs/batch", {"jobs": [{"kind": "a"}, both]})
    assert (refused["http"], refused["code"]) == (422, "invalid_body")
    paths = {fault["path"] for fault in refused["errors"]}
    assert paths == {"$.jobs[1].delay_s", "$.jobs[1].requires.min_vram_mb"}


async def test_a_key_repeats_the_same_job_by_field_or_by_header(work: Work) -> None:
    body = {"kind": "work", "payload": {"a": 1, "b": 2}}
    first = await work.api("POST", "/v1/jobs", {**body, "idempotency_key": "k"})
    again = await work.api(
        "POST", "/v1/jobs", {"kind": "work", "payload": {"b": 2, "a": 1}, "idempotency_key": "k"}
    )
    assert (first["http"], again["http"], again["id"]) == (201, 200, first["id"])
    headers = {**work.admin.headers, "Idempotency-Key": "k"}
    async with work.client.post("/v1/jobs", json=body, headers=headers) as answer:
        assert (answer.status, (await answer.json())["id"]) == (200, first["id"])
    other = await work.api("POST", "/v1/jobs", {"kind": "work", "idempotency_key": "k"})
    assert (other["http"], other["code"]) == (409, "idempotency_mismatch")


async def test_a_batch_answers_in_the_order_given(work: Work) -> None:
    await work.api("POST", "/v1/jobs", {"kind": "b", "idempotency_key": "k"})
    batch = [{"kind": "a"}, {"kind": "b", "idempotency_key": "k"}, {"kind": "c"}]
    told = await work.api("POST", "/v1/jobs/batch", {"jobs": batch})
    assert told["http"] == 201
    assert [one["created"] for one in told["jobs"]] == [True, False, True]
    kinds = [(await work.api("GET", f"/v1/jobs/{one['id']}"))["kind"] for one in told["jobs"]]
    assert kinds == ["a", "b", "c"]


async def test_waiting_for_a_job_ends_with_the_job(work: Work) -> None:
    job_id, lease_id = await work.running()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(work.api("GET", f"/v1/jobs/{job_id}?wait_s=30"))
        url = f"/v1/node/jobs/{job_id}/complete"
        done = await work.call(work.node, "POST", url, {"lease_id": lease_id, "result": 0})
        assert done == {
            "http": 200, "id": job_id, "status": "complete", "attempt": 1, "not_before": None
        }  # fmt: skip
    assert (waiting.result()["status"], waiting.result()["result"]) == ("complete", 0)


async def test_a_job_that_goes_on_is_shown_as_it_is_when_the_wait_is_over(work: Work) -> None:
    job = await work.submit()
    told = await work.api("GET", f"/v1/jobs/{job['id']}?wait_s=0.01")
    assert told["status"] == "queued"


async def test_the_history_tells_who_did_what_and_when(work: Work) -> None:
    job_id, _ = await work.running()
    first = await work.api("GET", f"/v1/jobs/{job_id}/events?limit=1")
    assert [event["event"] for event in first["events"]] == ["queued"]
    url = f"/v1/jobs/{job_id}/events?cursor={first['next_cursor']}"
    rest = await work.api("GET", url)
    [claimed] = rest["events"]
    assert set(claimed) == {"event", "at", "node_id", "attempt", "detail"}
    assert (claimed["event"], claimed["node_id"], claimed["attempt"]) == (
        "claimed",
        str(work.node.node_id),
        1,
    )
    assert rest["next_cursor"] is None


async def test_lists_are_read_page_by_page(work: Work) -> None:
    ids = [(await work.submit())["id"] for _ in range(5)]
    seen, cursor = [], ""
    while True:
        page = await work.api("GET", f"/v1/jobs?limit=2{cursor}")
        seen += [job["id"] for job in page["jobs"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == ids[::-1]


async def test_the_queue_is_counted_by_class(work: Work) -> None:
    await work.running(kind="a")
    await work.submit(kind="a")
    await work.api("POST", "/v1/jobs", {"kind": "b", "delay_s": 60})
    told = await work.api("GET", "/v1/queue")
    assert (told["queued"], told["scheduled"], told["running"], told["blocked"]) == (1, 1, 1, 0)
    by_kind = {one["kind"]: one for one in told["classes"]}
    assert by_kind["a"]["oldest_queued_s"] >= 0
    assert by_kind["b"]["oldest_queued_s"] is None


async def test_cancelling_needs_no_body_and_names_no_stranger(work: Work, keys: Keys) -> None:
    job = await work.submit()
    other = await keys.organization("other")
    url = f"/v1/jobs/{job['id']}/cancel"
    refused = await work.call(other, "POST", url)
    made_up = await work.call(other, "POST", f"/v1/jobs/{uuid4()}/cancel")
    assert [(r["http"], r["code"]) for r in (refused, made_up)] == [(404, "job_not_found")] * 2
    assert (await work.api("POST", url))["status"] == "cancelled"


async def test_bad_submissions_are_refused_and_nothing_is_stored(work: Work) -> None:
    await _refuse_all(work, "/v1/jobs", WHOLE, JobBody, wire.LIMIT_BYTES)


async def test_bad_batches_are_refused_and_nothing_is_stored(work: Work) -> None:
    await _refuse_all(work, "/v1/jobs/batch", BATCH, BatchBody, wire.BATCH_LIMIT_BYTES)


async def _refuse_all(work: Work, url: str, good: Any, kind: Any, limit_bytes: int) -> None:
    for bad in variants(good, kind, limit_bytes=limit_bytes):
        await assert_refused(work.client, "POST", url, bad, headers=work.admin.headers)
    assert await work.pool.fetchval("SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=2", "limit"),
        ("status=ready", "status"),
        ("node_id=7", "node_id"),
        ("parent_job_id=", "parent_job_id"),
        ("kind=", "kind"),
        ("kind=%00", "kind"),
        ("cursor=abc", "cursor"),
        ("cursor=" + "A" * 5000, "cursor"),
        ("order=up", "order"),
    ],
)
async def test_bad_queries_are_named(work: Work, query: str, path: str) -> None:
    told = await work.api("GET", f"/v1/jobs?{query}")
    assert (told["http"], told["code"]) == (422, "invalid_query")
    assert [fault["path"] for fault in told["errors"]] == [path]


@pytest.mark.parametrize("wait_s", ["-1", "31", "nan", "1e9", "x", ""])
async def test_a_wait_is_between_none_and_thirty_seconds(work: Work, wait_s: str) -> None:
    job = await work.submit()
    told = await work.api("GET", f"/v1/jobs/{job['id']}?wait_s={wait_s}")
    assert (told["http"], told["code"]) == (422, "invalid_query")


@pytest.mark.parametrize(
    ("method", "url", "scope"),
    [
        ("POST", "/v1/jobs", ApiScope.JOBS_WRITE),
        ("POST", "/v1/jobs/batch", ApiScope.JOBS_WRITE),
        ("POST", "/v1/jobs/{id}/cancel", ApiScope.JOBS_WRITE),
        ("GET", "/v1/jobs", ApiScope.JOBS_READ),
        ("GET", "/v1/jobs/{id}", ApiScope.JOBS_READ),
        ("GET", "/v1/jobs/{id}/events", ApiScope.JOBS_READ),
        ("GET", "/v1/queue", ApiScope.JOBS_READ),
    ],
)
async def test_each_route_names_the_scope_that_is_missing(
    work: Work, keys: Keys, client: Client, method: str, url: str, scope: ApiScope
) -> None:
    others = [one for one in ApiScope if one not in (scope, ApiScope.ADMIN)]
    weak = await keys.api(work.admin.organization_id, *others)
    told = await work.call(weak, method, url.format(id=uuid4()), {})
    assert (told["http"], told["code"]) == (403, "missing_scope")
    assert scope in told["detail"]
    node = Caller(work.node.organization_id, work.node.id, work.node.key)
    assert (await work.call(node, method, url.format(id=uuid4()), {}))["http"] == 403
