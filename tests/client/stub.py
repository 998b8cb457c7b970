"""A controller that answers as it is told, for what a real one seldom does."""

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
from aiohttp import web
from aiohttp.test_utils import TestServer

KEY = "umk_aaaabbbbcccc_" + "s" * 52

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@attrs.frozen
class Seen:
    """A request as it came in."""

    method: str
    path: str  # with its query, still encoded
    body: Any
    headers: dict[str, str]


@attrs.define
class Stub:
    """Gives each request the next of `answers`; keeps what was asked."""

    answers: deque[Answer] = attrs.Factory(deque)
    seen: list[Seen] = attrs.Factory(list)
    url: str = ""

    def will(self, *answers: Answer) -> None:
        self.answers.extend(answers)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        sent = await request.read()
        body = json.loads(sent) if sent else None
        path = request.raw_path
        self.seen.append(Seen(request.method, path, body, dict(request.headers)))
        if not self.answers:
            raise AssertionError(f"nobody expected {request.method} {path}")
        return await self.answers.popleft()(request)


@asynccontextmanager
async def serving() -> AsyncIterator[Stub]:
    stub = Stub()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", stub.handle)
    async with TestServer(app, host="127.0.0.1") as server:
        stub.url = str(server.make_url("")).rstrip("/")
        yield stub


def says(told: Any, status: int = 200, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(
            told, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    return answer


def refuses(status: int, code: str, detail: str = "No.", **headers: str) -> Answer:
    return says({"status": status, "code": code, "detail": detail}, status, **headers)


def text(told: str, status: int = 200, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(
            text=told, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    return answer


def nothing() -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    return answer


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """Take the request, and end the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def leaves(request: web.Request) -> web.StreamResponse:
    """Answer, and close the connection without having said so: a server that was restarted."""
    answer = web.json_response({})
    await answer.prepare(request)
    await answer.write_eof()
    assert request.transport is not None
    request.transport.close()
    return answer


def job(status: str = "queued", **fields: Any) -> dict[str, Any]:
    """Return a job as the API shows it."""
    return {
        "id": "01a23208-282b-7367-9a8c-ad0e9a79a4a6",
        "organization_id": "01a23208-17df-7498-9375-10711c087831",
        "kind": "work",
        "status": status,
        "priority": 100,
        "requires": {},
        "prefer": {},
        "payload": None,
        "attempt": 0,
        "max_attempts": 3,
        "cancel_requested": False,
        **dict.fromkeys(
            [
                *("project_id", "lang", "requested_by", "not_before", "start_by", "lease_id"),
                *("lease_owner", "lease_expires_at", "blocked", "parent_job_id"),
                *("idempotency_key", "placement", "progress", "result", "error"),
                *("started_at", "finished_at"),
            ]
        ),
        "created_at": "2026-01-02T03:04:05.000006Z",
        **fields,
    }
