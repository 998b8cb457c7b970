"""Routes for nodes' work. Each: who calls, what they sent, one operation, the answer."""

import random

from aiohttp import web

from umbra_compute.errors import JobNotFound, UmbraError
from umbra_compute.http import auth, longpoll, texts, wire
from umbra_compute.http import wire_jobs as shapes
from umbra_compute.http.context import COMPLETE, POOL, RENEW, WAKE
from umbra_compute.model.caller import NodeScope
from umbra_compute.model.leases import ClaimAsk, Completion, Ended, Held, Renewal, Renewed
from umbra_compute.ops import leases

routes = web.RouteTableDef()


@routes.post("/v1/node/claim")
async def claim(request: web.Request) -> web.Response:
    node = await auth.node(request, NodeScope.CLAIM)
    body = await wire.read(request, shapes.ClaimBody, empty_as=b"{}")
    ask = ClaimAsk(
        kinds=None if body.kinds is None else tuple(body.kinds),
        limit=body.limit,
        lease_seconds=body.lease_seconds,
    )
    answer = await longpoll.claim(request, node, ask, body.wait_s)
    if longpoll.is_gone(request):
        await longpoll.give_back_undelivered(request, node, answer.claimed)
    jobs = [shapes.ClaimedReply.of(one) for one in answer.claimed]
    return wire.reply(shapes.ClaimReply(jobs=jobs, draining=answer.draining))


@routes.post("/v1/node/renew")
async def renew_many(request: web.Request) -> web.Response:
    node = await auth.node(request, NodeScope.CLAIM)
    body = await wire.read(request, shapes.RenewManyBody)
    renewals = [
        Renewal(
            held=Held(node=node, job_id=item.job_id, lease_id=item.lease_id),
            lease_seconds=body.lease_seconds,
            progress=_progress(item.progress),
        )
        for item in body.leases
    ]
    verdicts = await leases.renew(request.app[POOL], renewals) if renewals else []
    live = [v for v in verdicts if isinstance(v, Renewed)]
    lost = [r.held.lease_id for r, v in zip(renewals, verdicts, strict=True) if v not in live]
    return wire.reply(
        shapes.RenewManyReply(
            renewed=[v.lease_id for v in live],
            lost=lost,
            cancel=[v.lease_id for v in live if v.cancel_requested],
        )
    )


@routes.post("/v1/node/jobs/{job_id}/renew")
async def renew(request: web.Request) -> web.Response:
    node = await auth.node(request, NodeScope.CLAIM)
    job_id = wire.path_id(request, "job_id", JobNotFound)
    body = await wire.read(request, shapes.RenewBody)
    renewed = await request.app[RENEW](
        Renewal(
            held=Held(node=node, job_id=job_id, lease_id=body.lease_id),
            lease_seconds=body.lease_seconds,
            progress=_progress(body.progress),
        )
    )
    return wire.reply(shapes.RenewReply.of(renewed))


@routes.post("/v1/node/jobs/{job_id}/complete")
async def complete(request: web.Request) -> web.Response:
    node = await auth.node(request, NodeScope.COMPLETE)
    job_id = wire.path_id(request, "job_id", JobNotFound)
    body = await wire.read(request, shapes.CompleteBody)
    held = Held(node=node, job_id=job_id, lease_id=body.lease_id)
    ended = await request.app[COMPLETE](Completion(held=held, result=body.result))
    return wire.reply(shapes.EndedReply.of(ended))


@routes.post("/v1/node/complete")
async def complete_many(request: web.Request) -> web.Response:
    node = await auth.node(request, NodeScope.COMPLETE)
    body = await wire.read(request, shapes.CompleteManyBody, limit_bytes=wire.BATCH_LIMIT_BYTES)
    completions = [
        Completion(
            held=Held(node=node, job_id=item.job_id, lease_id=item.lease_id), result=item.result
        )
        for item in body.jobs
    ]
    verdicts = await leases.complete(request.app[POOL], request.app[WAKE], completions)
    items = [_verdict(c, v) for c, v in zip(completions, verdicts, strict=True)]
    return wire.reply(shapes.CompleteManyReply(jobs=items))


@routes.post("/v1/node/jobs/{job_id}/fail")
async def fail(request: web.Request) -> web.Response:
    node = await auth.node(request, NodeScope.COMPLETE)
    job_id = wire.path_id(request, "job_id", JobNotFound)
    body = await wire.read(request, shapes.FailBody, lenient=("error",))
    ended = await leases.fail(
        request.app[POOL],
        request.app[WAKE],
        Held(node=node, job_id=job_id, lease_id=body.lease_id),
        error=texts.shortened(body.error),
        retry=body.retry,
        retry_after_s=body.retry_after_s,
        jitter=random.uniform(-1, 1),  # noqa: S311 - spreads load, guards nothing
    )
    return wire.reply(shapes.EndedReply.of(ended))


@routes.post("/v1/node/jobs/{job_id}/release")
async def release(request: web.Request) -> web.Response:
    node = await auth.node(request, NodeScope.CLAIM)
    job_id = wire.path_id(request, "job_id", JobNotFound)
    body = await wire.read(request, shapes.ReleaseBody, lenient=("reason",))
    reason = None if body.reason is None else texts.shortened(body.reason)
    held = Held(node=node, job_id=job_id, lease_id=body.lease_id)
    ended = await leases.release(request.app[POOL], request.app[WAKE], held, reason=reason)
    return wire.reply(shapes.EndedReply.of(ended))


def _progress(body: shapes.ProgressBody | None) -> str | None:
    if body is None:
        return None
    return wire.dump({"fraction": body.fraction, "message": body.message})


def _verdict(completion: Completion, verdict: Ended | UmbraError) -> shapes.CompletedItem:
    return shapes.CompletedItem(
        job_id=completion.held.job_id,
        lease_id=completion.held.lease_id,
        status=verdict.status if isinstance(verdict, Ended) else None,
        code=verdict.code if isinstance(verdict, UmbraError) else None,
    )
