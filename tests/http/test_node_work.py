"""The routes of nodes' work."""

import asyncio
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from aiohttp import web

from tests.http.badinput import assert_refused, variants
from tests.http.conftest import Keys
from tests.http.work import Work, work
from tests.world import until
from umbra_compute.http import context, wire
from umbra_compute.http import wire_jobs as shapes
from umbra_compute.model.caller import NodeScope
from umbra_compute.wake import Wake, relaying

__all__ = ["work"]

ID = "01a23206-794a-76b9-9e8a-03c4494abaa0"


async def test_a_claim_hands_over_job_lease_and_placement(work: Work) -> None:
    job = await work.submit(payload=[1])
    [claimed] = await work.claim(lease_seconds=30)
    assert set(claimed) == {"job", "lease", "placement"}
    assert (claimed["job"]["id"], claimed["job"]["payload"]) == (job["id"], [1])
    assert claimed["lease"] == {
        "lease_id": claimed["job"]["lease_id"], "lease_seconds": 30, "expires_in_s": 30.0
    }  # fmt: skip
    assert claimed["placement"] == claimed["job"]["placement"]
    assert claimed["placement"]["reason"] == "placed:cpu"


async def test_nothing_to_give_is_an_empty_list_and_a_drain_is_said(work: Work) -> None:
    told = await work.call(work.node, "POST", "/v1/node/claim")
    assert told == {"http": 200, "jobs": []}
    await work.submit()
    await work.pool.execute("UPDATE compute_nodes SET status = 'draining'")
    told = await work.call(work.node, "POST", "/v1/node/claim", {"wait_s": 30})
    assert told == {"http": 200, "jobs": [], "draining": True}


async def test_a_waiting_claim_is_handed_what_comes_meanwhile(
    work: Work, app: web.Application
) -> None:
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(work.claim(wait_s=30))
        await until(lambda: _is_waiting(app))
        job = await work.submit()
    [claimed] = waiting.result()
    assert claimed["job"]["id"] == job["id"]


async def test_a_submission_on_another_controller_wakes_a_waiting_claim(
    work: Work, app: web.Application, dsn: str, pool: Any
) -> None:
    elsewhere = Wake()
    async with relaying(app[context.WAKE], pool, dsn), relaying(elsewhere, pool, dsn):
        await until(lambda: _listens(pool))
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(work.claim(wait_s=30))
            await until(lambda: _is_waiting(app))
            await pool.execute(
                """INSERT INTO requirement_classes (organization_id, kind, requires, prefer, hash)
                   VALUES ($1, 'work', '{}', '{}', 'x')""",
                work.admin.organization_id,
            )
            row = await pool.fetchrow(
                """INSERT INTO jobs (id, organization_id, class_id, kind, state, priority,
                                     not_before, payload)
                   SELECT gen_random_uuid(), organization_id, id, 'work', 'ready', 100, now(), '{}'
                     FROM requirement_classes RETURNING id, class_id"""
            )
            elsewhere.ready(work.admin.organization_id, row["class_id"], 1)
        [claimed] = waiting.result()
        assert claimed["job"]["id"] == str(row["id"])


async def test_a_lost_word_costs_one_poll(
    work: Work, app: web.Application, dsn: str, pool: Any
) -> None:
    async with relaying(app[context.WAKE], pool, dsn), asyncio.TaskGroup() as group:
        waiting = group.create_task(work.claim(wait_s=30))
        await until(lambda: _is_waiting(app))
        await pool.execute(
            """WITH c AS (INSERT INTO requirement_classes (organization_id, kind, requires, prefer,
                                                           hash)
                          VALUES ($1, 'work', '{}', '{}', 'x') RETURNING *)
               INSERT INTO jobs (id, organization_id, class_id, kind, state, priority, not_before,
                                 payload)
               SELECT gen_random_uuid(), organization_id, id, 'work', 'ready', 100, now(), '{}'
                 FROM c""",
            work.admin.organization_id,
        )
    assert len(waiting.result()) == 1


async def test_a_caller_that_went_away_loses_no_job(work: Work, app: web.Application) -> None:
    request = asyncio.ensure_future(work.claim(wait_s=30))
    await until(lambda: _is_waiting(app))
    request.cancel()
    await asyncio.wait([request])
    job = await work.submit()

    async def is_queued_unburnt() -> bool:
        told = await work.api("GET", f"/v1/jobs/{job['id']}")
        return (told["status"], told["attempt"]) == ("queued", 0)

    await until(is_queued_unburnt)
    [claimed] = await work.claim()
    assert (claimed["job"]["id"], claimed["job"]["attempt"]) == (job["id"], 1)


async def test_stopping_ends_long_polls_with_what_they_have(
    work: Work, app: web.Application
) -> None:
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(work.claim(wait_s=30))
        await until(lambda: _is_waiting(app))
        app[context.WAKE].stop()
    assert waiting.result() == []


async def test_one_call_renews_all_leases_and_tells_which_are_lost_or_to_cancel(
    work: Work,
) -> None:
    live, to_cancel = await work.running(), await work.running()
    lost = (str(uuid4()), str(uuid4()))
    await work.api("POST", f"/v1/jobs/{to_cancel[0]}/cancel")
    leases = [{"job_id": job, "lease_id": lease} for job, lease in (live, to_cancel, lost)]
    told = await work.call(work.node, "POST", "/v1/node/renew", {"leases": leases})
    assert told == {
        "http": 200,
        "renewed": [live[1], to_cancel[1]],
        "lost": [lost[1]],
        "cancel": [to_cancel[1]],
    }
    assert (await work.call(work.node, "POST", "/v1/node/renew", {"leases": []}))["lost"] == []


async def test_a_single_renewal_tells_how_long_and_keeps_progress(work: Work) -> None:
    job_id, lease_id = await work.running()
    body = {"lease_id": lease_id, "lease_seconds": 5, "progress": {"fraction": 0, "message": "go"}}
    told = await work.call(work.node, "POST", f"/v1/node/jobs/{job_id}/renew", body)
    assert told == {
        "http": 200, "lease_id": lease_id, "lease_seconds": 5, "expires_in_s": 5.0, "cancel": False
    }  # fmt: skip
    job = await work.api("GET", f"/v1/jobs/{job_id}")
    assert job["progress"] == {"fraction": 0.0, "message": "go"}


async def test_many_completions_have_a_verdict_each(work: Work) -> None:
    job_id, lease_id = await work.running()
    lost, unknown = str(uuid4()), str(uuid4())
    items = [
        {"job_id": job_id, "lease_id": lost},
        {"job_id": job_id, "lease_id": lease_id, "result": {"a": 0}},
        {"job_id": unknown, "lease_id": lost},
    ]
    for _ in range(2):  # the second time after a lost reply
        told = await work.call(work.node, "POST", "/v1/node/complete", {"jobs": items})
        assert [(one["status"], one["code"]) for one in told["jobs"]] == [
            (None, "lease_lost"),
            ("complete", None),
            (None, "job_not_found"),
        ]


async def test_a_failure_says_when_the_job_runs_again(work: Work) -> None:
    job_id, lease_id = await work.running()
    body = {"lease_id": lease_id, "error": "boom", "retry": True, "retry_after_s": 0}
    url = f"/v1/node/jobs/{job_id}/fail"
    told = await work.call(work.node, "POST", url, body)
    assert (told["http"], told["status"], told["attempt"]) == (200, "queued", 1)
    assert told["not_before"].endswith("Z")
    assert await work.call(work.node, "POST", url, body) == told


async def test_error_texts_are_kept_whatever_is_in_them_q12(work: Work) -> None:
    job_id, lease_id = await work.running()
    text = '"\\u0000\\ud800' + "x" * 20_000 + 'end"'
    headers = {**work.node.headers, "Content-Type": "application/json"}
    async with work.client.post(
        f"/v1/node/jobs/{job_id}/fail",
        data=f'{{"lease_id": "{lease_id}", "error": {text}}}',
        headers=headers,
    ) as answer:
        assert answer.status == 200
    job = await work.api("GET", f"/v1/jobs/{job_id}")
    assert job["status"] == "failed"
    assert job["error"].startswith("\ufffd\ufffdx")
    assert job["error"].endswith("xend")
    assert "left out" in job["error"]
    assert len(job["error"]) <= 16 * 1024


async def test_a_release_gives_the_job_back_unburnt(work: Work) -> None:
    job_id, lease_id = await work.running()
    body = {"lease_id": lease_id, "reason": "drain"}
    told = await work.call(work.node, "POST", f"/v1/node/jobs/{job_id}/release", body)
    assert (told["http"], told["status"]) == (200, "queued")
    assert (await work.api("GET", f"/v1/jobs/{job_id}"))["attempt"] == 0


ROUTES: list[tuple[str, dict[str, Any], Any, NodeScope]] = [
    (
        "/v1/node/claim",
        {"kinds": ["a"], "limit": 1, "lease_seconds": 5, "wait_s": 0},
        shapes.ClaimBody,
        NodeScope.CLAIM,
    ),
    (
        "/v1/node/renew",
        {
            "leases": [
                {"job_id": ID, "lease_id": ID, "progress": {"fraction": 0.5, "message": "m"}}
            ],
            "lease_seconds": 5,
        },
        shapes.RenewManyBody,
        NodeScope.CLAIM,
    ),
    (
        f"/v1/node/jobs/{ID}/renew",
        {"lease_id": ID, "lease_seconds": 5, "progress": {"fraction": 0.5}},
        shapes.RenewBody,
        NodeScope.CLAIM,
    ),
    (f"/v1/node/jobs/{ID}/release", {"lease_id": ID}, shapes.ReleaseBody, NodeScope.CLAIM),
    (f"/v1/node/jobs/{ID}/complete", {"lease_id": ID}, shapes.CompleteBody, NodeScope.COMPLETE),
    (
        f"/v1/node/jobs/{ID}/fail",
        {"lease_id": ID, "error": "boom", "retry": True, "retry_after_s": 1},
        shapes.FailBody,
        NodeScope.COMPLETE,
    ),
    (
        "/v1/node/complete",
        {"jobs": [{"job_id": ID, "lease_id": ID, "result": 1}]},
        shapes.CompleteManyBody,
        NodeScope.COMPLETE,
    ),
]


@pytest.mark.parametrize(("url", "good", "kind", "scope"), ROUTES, ids=lambda v: str(v)[:40])
async def test_bad_input_is_refused_and_changes_nothing(
    work: Work, url: str, good: dict[str, Any], kind: Any, scope: NodeScope
) -> None:
    await work.running()
    before = await work.pool.fetch("SELECT * FROM jobs")
    limit = wire.BATCH_LIMIT_BYTES if url == "/v1/node/complete" else wire.LIMIT_BYTES
    texts = ("error", "reason")  # kept whatever is in them, bytes that are no UTF-8 included
    accepted = {"nothing"} if url == "/v1/node/claim" else set()
    if {field.name for field in msgspec.structs.fields(kind)} & set(texts):
        accepted.add("no UTF-8")
    for bad in variants(good, kind, limit_bytes=limit, lenient=texts):
        if bad.what in accepted:
            continue
        await assert_refused(work.client, "POST", url, bad, headers=work.node.headers)
    assert await work.pool.fetch("SELECT * FROM jobs") == before


@pytest.mark.parametrize(("url", "good", "kind", "scope"), ROUTES, ids=lambda v: str(v)[:40])
async def test_each_route_names_the_scope_that_is_missing(
    work: Work, keys: Keys, url: str, good: dict[str, Any], kind: Any, scope: NodeScope
) -> None:
    others = [one for one in NodeScope if one is not scope]
    weak = await keys.node(work.admin.organization_id, node_id=work.node.node_id, scopes=others)
    told = await work.call(weak, "POST", url, good)
    assert (told["http"], told["code"]) == (403, "missing_scope")
    assert scope in told["detail"]


@pytest.mark.parametrize("call", ["renew", "release", "complete", "fail"])
async def test_an_id_that_is_none_is_an_unknown_job(work: Work, call: str) -> None:
    told = await work.call(work.node, "POST", f"/v1/node/jobs/no-uuid/{call}", {})
    assert (told["http"], told["code"]) == (404, "job_not_found")


async def _is_waiting(app: web.Application) -> bool:
    return bool(app[context.WAKE].waiting_organizations())


async def _listens(pool: Any) -> bool:
    listening = await pool.fetchval(
        """SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND query ILIKE 'LISTEN%'"""
    )
    return bool(listening >= 2)
