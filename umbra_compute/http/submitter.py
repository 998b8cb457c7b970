"""Routes for submitters. Each: who calls, what they sent, one operation, the answer."""

from datetime import datetime
from uuid import UUID

import msgspec
from aiohttp import web

from umbra_compute.errors import InvalidBody, InvalidQuery, JobNotFound
from umbra_compute.http import auth, longpoll, submission, wire
from umbra_compute.http import wire_jobs as shapes
from umbra_compute.http.context import CATALOGUE, POOL, SUBMIT, WAKE
from umbra_compute.model.caller import ApiScope
from umbra_compute.ops import jobs, queue
from umbra_compute.store.jobs import Filter

routes = web.RouteTableDef()

_KEY_HEADER = "Idempotency-Key"
_KEY_CHARS = 200


@routes.post("/v1/jobs")
async def submit(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.JOBS_WRITE)
    body = await wire.read(request, shapes.JobBody)
    new = submission.new_job(caller, _with_header_key(request, body))
    submitted = await request.app[SUBMIT](new)
    reply = shapes.JobReply.of(submitted.job)
    return wire.reply(reply, status=201 if submitted.created else 200)


@routes.post("/v1/jobs/batch")
async def submit_batch(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.JOBS_WRITE)
    body = await wire.read(request, shapes.BatchBody, limit_bytes=wire.BATCH_LIMIT_BYTES)
    new = submission.new_jobs(caller, body.jobs)
    app = request.app
    submitted = await jobs.submit_all(app[POOL], app[CATALOGUE], app[WAKE], new)
    items = [shapes.SubmittedItem.of(one) for one in submitted]
    return wire.reply(shapes.BatchReply(jobs=items), status=201)


@routes.get("/v1/jobs")
async def list_jobs(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.JOBS_READ)
    asked = wire.query(request, shapes.JobsQuery)
    before = None if asked.cursor is None else _place(asked.cursor)
    page = await jobs.list_page(
        request.app[POOL],
        caller.organization_id,
        Filter(
            status=asked.status,
            kind=asked.kind,
            project_id=asked.project_id,
            parent_job_id=asked.parent_job_id,
            node_id=asked.node_id,
        ),
        before=before,
        limit=asked.limit + 1,
    )
    shown = page[: asked.limit]
    more = len(page) > len(shown)
    cursor = wire.encode_cursor(shown[-1].created_at, shown[-1].id) if more else None
    return wire.reply(
        shapes.JobsReply(jobs=[shapes.JobReply.of(job) for job in shown], next_cursor=cursor)
    )


@routes.get("/v1/jobs/{job_id}")
async def show(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.JOBS_READ)
    job_id = wire.path_id(request, "job_id", JobNotFound)
    asked = wire.query(request, shapes.JobQuery)
    job = await longpoll.job(request, caller.organization_id, job_id, asked.wait_s)
    return wire.reply(shapes.JobReply.of(job))


@routes.get("/v1/jobs/{job_id}/events")
async def history(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.JOBS_READ)
    job_id = wire.path_id(request, "job_id", JobNotFound)
    asked = wire.query(request, shapes.EventsQuery)
    after = 0 if asked.cursor is None else wire.decode_cursor(asked.cursor, tuple[int])[0]
    page = await jobs.history(
        request.app[POOL], caller.organization_id, job_id, after=after, limit=asked.limit + 1
    )
    shown = page[: asked.limit]
    cursor = wire.encode_cursor(shown[-1].id) if len(page) > len(shown) else None
    events = [shapes.EventReply.of(event) for event in shown]
    return wire.reply(shapes.EventsReply(events=events, next_cursor=cursor))


@routes.post("/v1/jobs/{job_id}/cancel")
async def cancel(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.JOBS_WRITE)
    job_id = wire.path_id(request, "job_id", JobNotFound)
    await wire.read(request, shapes.Frozen, empty_as=b"{}")
    app = request.app
    job = await jobs.cancel(app[POOL], app[WAKE], caller.organization_id, job_id)
    return wire.reply(shapes.JobReply.of(job))


@routes.get("/v1/queue")
async def show_queue(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.JOBS_READ)
    wire.query(request, shapes.Frozen)
    rows = await queue.by_class(request.app[POOL], caller.organization_id)
    classes = [
        shapes.QueueClass(
            class_id=row["class_id"],
            kind=row["kind"],
            requires=wire.raw(row["requires"]),
            prefer=wire.raw(row["prefer"]),
            queued=row["queued"],
            scheduled=row["scheduled"],
            running=row["running"],
            oldest_queued_s=row["oldest_queued_s"],
            blocked=row["blocked"],
        )
        for row in rows
    ]
    free = [one for one in classes if one.blocked is None]
    ages = [one.oldest_queued_s for one in free if one.oldest_queued_s is not None]
    return wire.reply(
        shapes.QueueReply(
            queued=sum(one.queued for one in free),
            scheduled=sum(one.scheduled for one in free),
            blocked=sum(one.queued + one.scheduled for one in classes if one.blocked is not None),
            running=sum(one.running for one in classes),
            oldest_queued_s=max(ages, default=None),
            classes=classes,
        )
    )


def _place(cursor: str) -> tuple[datetime, UUID]:
    return wire.decode_cursor(cursor, tuple[wire.Timestamp, UUID])


def _with_header_key(request: web.Request, body: shapes.JobBody) -> shapes.JobBody:
    """Return the body with the key of the Idempotency-Key header, if one is there."""
    if _KEY_HEADER not in request.headers:
        return body
    key = request.headers[_KEY_HEADER]
    if not 1 <= len(key) <= _KEY_CHARS or not key.isprintable():
        raise InvalidQuery((_KEY_HEADER, f"expected 1 to {_KEY_CHARS} printable characters"))
    if body.idempotency_key is not None and body.idempotency_key != key:
        raise InvalidBody(("$.idempotency_key", f"differs from the header {_KEY_HEADER}"))
    return msgspec.structs.replace(body, idempotency_key=key)
