"""A controller for the agent's tests: true to the protocol, and told what to answer."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import attrs
from aiohttp import web

KEY = "umn_abcdefghijkl_secretsecretsecret"

Call = dict[str, Any]
Answer = Callable[[Call], Awaitable[web.Response | None]]


@attrs.define(eq=False)
class Stub:
    """Jobs to hand out, and every call that came. `answers` may replace a route's reply."""

    url: str = ""
    waiting: list[dict[str, Any]] = attrs.Factory(list)
    calls: list[tuple[str, Call]] = attrs.Factory(list)
    answers: dict[str, Answer] = attrs.Factory(dict)
    lost: set[str] = attrs.Factory(set)
    cancel: set[str] = attrs.Factory(set)
    heartbeat_s: float = 0.2
    draining: bool = False
    is_away: bool = False
    _arrived: asyncio.Event = attrs.Factory(asyncio.Event)

    def job(self, kind: str = "work", **fields: Any) -> str:
        """Put a job into the line; return its lease id."""
        lease_id = str(uuid.uuid4())
        told = {"id": str(uuid.uuid4()), "kind": kind, "attempt": 1, "payload": {"n": 1},
                "requires": {}, "lease_id": lease_id, **fields}  # fmt: skip
        self.waiting.append(told)
        self._arrived.set()
        return lease_id

    def of(self, route: str) -> list[Call]:
        """Return the bodies of all calls of a route, oldest first."""
        return [body for name, body in self.calls if name == route]

    def endings(self, lease_id: str) -> list[tuple[str, Call]]:
        """Return the calls that ended a lease: complete, fail or release."""
        return [
            (name, body)
            for name, body in self.calls
            if name in ("complete", "fail", "release") and body["lease_id"] == lease_id
        ]

    async def heartbeat(self, body: Call) -> web.Response:
        reported = {one["lease_id"] for one in body["leases"]}
        return web.json_response(
            {
                "node_id": str(uuid.UUID(int=1)),
                "status": "draining" if self.draining else "online",
                "heartbeat_interval_s": self.heartbeat_s,
                "lost_leases": sorted(self.lost & reported),
                "cancel": sorted(self.cancel & reported),
                "draining": self.draining,
            }
        )

    async def claim(self, body: Call) -> web.Response:
        self._arrived.clear()
        if not self.waiting:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(body["wait_s"]):
                    await self._arrived.wait()
        taken = self.waiting[: body["limit"]]
        del self.waiting[: body["limit"]]
        lease_s = body["lease_seconds"]
        jobs = [
            {
                "job": job,
                "lease": {
                    "lease_id": job["lease_id"],
                    "lease_seconds": lease_s,
                    "expires_in_s": float(lease_s),
                },
                "placement": {"device_label": "cpu"},
            }
            for job in taken
        ]
        return web.json_response({"jobs": jobs})

    async def renew(self, body: Call) -> web.Response:
        leases = [one["lease_id"] for one in body["leases"]]
        renewed = [one for one in leases if one not in self.lost]
        told = {
            "renewed": renewed,
            "lost": [one for one in leases if one in self.lost],
            "cancel": [one for one in renewed if one in self.cancel],
        }
        return web.json_response(told)

    async def node(self, body: Call) -> web.Response:
        return web.json_response({"id": str(uuid.UUID(int=1)), "name": "n1", "status": "online"})

    async def refuse(self, body: Call) -> web.Response:
        return problem(422, "invalid_body")

    async def end(self, body: Call) -> web.Response:
        if body["lease_id"] in self.lost:
            return problem(409, "lease_lost")
        return web.json_response(
            {"id": "x", "status": "complete", "attempt": 1, "not_before": None}
        )


def problem(status: int, code: str, **fields: Any) -> web.Response:
    told = {"status": status, "code": code, "detail": code, **fields}
    return web.json_response(told, status=status, content_type="application/problem+json")


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Stub]:
    """Serve on a free port of loopback while the block runs."""
    stub = Stub()

    async def handle(request: web.Request, name: str, reply: Answer) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return problem(401, "unauthorized")
        body = await request.json() if request.can_read_body else {}
        if stub.is_away:
            return problem(503, "database_unavailable")
        if "" in body:  # a field of no route: asked only to learn whether the key may ask
            reply = stub.refuse
        else:
            stub.calls.append((name, body))
        special = await stub.answers[name](body) if name in stub.answers else None
        answer = await reply(body) if special is None else special
        if answer is None:
            raise AssertionError("a route answers")
        return answer

    def route(path: str, name: str, reply: Answer) -> web.RouteDef:
        async def handler(request: web.Request) -> web.Response:
            return await handle(request, name, reply)

        return web.route("GET" if name == "node" else "POST", path, handler)

    app = web.Application()
    one = "/v1/node/jobs/{id}"
    app.add_routes(
        [
            route("/v1/node", "node", stub.node),
            route("/v1/node/complete", "complete_many", stub.refuse),
            route("/v1/node/heartbeat", "heartbeat", stub.heartbeat),
            route("/v1/node/claim", "claim", stub.claim),
            route("/v1/node/renew", "renew", stub.renew),
            *(route(f"{one}/{name}", name, stub.end) for name in ("complete", "fail", "release")),
        ]
    )
    runner = web.AppRunner(app, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    stub.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield stub
    finally:
        await runner.cleanup()
