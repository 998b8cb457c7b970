"""The asynchronous client: the same methods, over aiohttp.

async with AsyncClient("https://controller.example:8443", api_key) as client:
    job = await client.wait((await client.submit({"kind": "chapter.analyse"}))["id"])
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
from yarl import URL

from umbra_compute.client import calls, exchange, shapes
from umbra_compute.client.calls import (
    LONGEST_WAIT_S,
    LOOK_AGAIN_S,
    PAGE,
    PATIENCE_S,
    TERMINAL,
    Page,
)
from umbra_compute.client.errors import ApiError, NotReachable
from umbra_compute.client.exchange import Address, Call

T = TypeVar("T")


class AsyncClient:
    """As Client, for many calls at once. The methods say there what they do and raise."""

    def __init__(self, url: str, api_key: str, *, insecure: bool = False) -> None:
        self._address = Address.parse(url, insecure=insecure)
        self._headers = exchange.headers(api_key)
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # by whether a call may be repeated

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    # -- jobs

    async def submit(self, job: Mapping[str, Any]) -> shapes.Job:
        return await self._call(calls.submit(job))

    async def submit_batch(self, jobs: Sequence[Mapping[str, Any]]) -> list[shapes.Submitted]:
        told: list[shapes.Submitted] = []
        for call in calls.batches(jobs):
            told += (await self._call(call))["jobs"]
        return told

    async def job(self, job_id: str, *, wait_s: float = 0.0) -> shapes.Job:
        return await self._call(calls.job(job_id, wait_s))

    async def watch(
        self,
        job_id: str,
        *,
        every_s: float = LONGEST_WAIT_S,
        within_s: float | None = None,
        patience_s: float = PATIENCE_S,
    ) -> AsyncIterator[shapes.Job]:
        ends_at = None if within_s is None else time.monotonic() + within_s
        heard_at = time.monotonic()
        while True:
            left_s = every_s if ends_at is None else max(0.0, ends_at - time.monotonic())
            try:
                job = await self.job(job_id, wait_s=min(every_s, left_s, LONGEST_WAIT_S))
            except NotReachable:
                if left_s == 0 or time.monotonic() - heard_at > patience_s:
                    raise
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            heard_at = time.monotonic()
            yield job
            if job["status"] in TERMINAL or left_s == 0:
                return

    async def wait(
        self, job_id: str, *, within_s: float | None = None, patience_s: float = PATIENCE_S
    ) -> shapes.Job:
        last: shapes.Job | None = None
        async for job in self.watch(job_id, within_s=within_s, patience_s=patience_s):
            last = job
        if last is None:
            raise AssertionError("watching yields a job or raises")
        return last

    def jobs(self, *, limit: int | None = None, **filters: str | None) -> AsyncIterator[shapes.Job]:
        return self._pages("jobs", limit, lambda size, at: calls.jobs(filters, size, at))

    def events(self, job_id: str, *, limit: int | None = None) -> AsyncIterator[shapes.Event]:
        return self._pages("events", limit, lambda size, at: calls.events(job_id, size, at))

    async def cancel(self, job_id: str) -> shapes.Job:
        return await self._call(calls.cancel(job_id))

    async def queue(self) -> shapes.Queue:
        return await self._call(calls.queue())

    # -- nodes

    async def add_node(self, name: str, **fields: Any) -> shapes.Node:
        return await self._call(calls.add_node({"name": name, **fields}))

    def nodes(
        self, *, limit: int | None = None, status: str | None = None
    ) -> AsyncIterator[shapes.Node]:
        return self._pages("nodes", limit, lambda size, at: calls.nodes(status, size, at))

    async def node(self, node_id: str) -> shapes.Node:
        return await self._call(calls.node(node_id))

    async def change_node(self, node_id: str, **fields: Any) -> shapes.Node:
        return await self._call(calls.change_node(node_id, fields))

    async def retire_node(self, node_id: str) -> None:
        await self._call(calls.retire_node(node_id))

    async def add_node_key(self, node_id: str, **fields: Any) -> shapes.NewNodeKey:
        return await self._call(calls.add_node_key(node_id, fields))

    def node_keys(self, node_id: str, *, limit: int | None = None) -> AsyncIterator[shapes.NodeKey]:
        return self._pages(
            "credentials", limit, lambda size, at: calls.node_keys(node_id, size, at)
        )

    async def revoke_node_key(self, node_id: str, credential_id: str) -> None:
        await self._call(calls.revoke_node_key(node_id, credential_id))

    # -- models and keys

    async def put_model(self, slug: str, **fields: Any) -> shapes.Model:
        return await self._call(calls.put_model(slug, fields))

    def models(self, *, limit: int | None = None) -> AsyncIterator[shapes.Model]:
        return self._pages("models", limit, calls.models)

    async def model(self, slug: str) -> shapes.Model:
        return await self._call(calls.model(slug))

    async def delete_model(self, slug: str) -> None:
        await self._call(calls.delete_model(slug))

    async def add_key(self, name: str, scopes: Sequence[str], **fields: Any) -> shapes.NewApiKey:
        return await self._call(calls.add_key({"name": name, "scopes": list(scopes), **fields}))

    def keys(self, *, limit: int | None = None) -> AsyncIterator[shapes.ApiKey]:
        return self._pages("keys", limit, calls.keys)

    async def revoke_key(self, key_id: str) -> None:
        await self._call(calls.revoke_key(key_id))

    # -- the service

    async def alive(self) -> shapes.Alive:
        return await self._call(calls.alive())

    async def ready(self) -> shapes.Ready:
        return await self._call(calls.ready())

    async def _call(self, call: Call[T]) -> T:
        attempt = 1
        while True:
            try:
                return await self._once(call)
            except (NotReachable, ApiError) as exc:
                pause_s = exchange.pause_s(call, attempt, exc, random.random())  # noqa: S311
                if pause_s is None:
                    raise
            await asyncio.sleep(pause_s)
            attempt += 1

    async def _once(self, call: Call[T]) -> T:
        content = call.content
        headers = {} if content is None else {"Content-Type": "application/json"}
        try:
            async with self._session(repeat=call.repeat).request(
                call.method,
                URL(self._address.url + call.path, encoded=True),
                data=content,
                headers=headers,
                allow_redirects=False,  # it would carry the key to wherever it points
                timeout=aiohttp.ClientTimeout(total=exchange.DEADLINE_S + call.waits_s),
            ) as answer:
                payload = await answer.read()
        except aiohttp.ClientConnectorCertificateError as exc:
            raise exchange.silent(self._address, exc.certificate_error, sent=False) from None
        except aiohttp.ClientConnectorError as exc:
            raise exchange.silent(self._address, exc.os_error, sent=False) from None
        except (OSError, TimeoutError, aiohttp.ClientError) as exc:
            raise exchange.silent(self._address, exc, sent=True) from None
        told: T = exchange.answered(
            self._address, answer.status, payload, answer.headers.get("Retry-After")
        )
        return told

    def _session(self, *, repeat: bool) -> aiohttp.ClientSession:
        """Return a session; what cannot be sent twice gets a new connection each time.

        A kept one may have been closed at the other end, which shows only by sending.
        """
        if repeat not in self._sessions:  # made here: its loop must be the one that runs
            connector = aiohttp.TCPConnector(force_close=not repeat)
            session = aiohttp.ClientSession(headers=self._headers, connector=connector)
            # It would send a DELETE again by itself, and has no public way to say no.
            session._retry_connection = False
            self._sessions[repeat] = session
        return self._sessions[repeat]

    async def _pages(
        self, name: str, limit: int | None, ask: Callable[[int, str | None], Call[Page]]
    ) -> AsyncIterator[Any]:
        left = limit
        cursor: str | None = None
        while left is None or left > 0:
            page = await self._call(ask(PAGE if left is None else left, cursor))
            for row in page[name]:
                yield row
            cursor = page["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(page[name])
