"""The plain client: one method per route."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from umbra_compute.client import calls, shapes
from umbra_compute.client.calls import (
    LONGEST_WAIT_S,
    LOOK_AGAIN_S,
    PAGE,
    PATIENCE_S,
    TERMINAL,
    Page,
)
from umbra_compute.client.errors import NotReachable
from umbra_compute.client.exchange import Call
from umbra_compute.client.transport import Transport

T = TypeVar("T")


class Client:
    """Calls one controller as the holder of one API key.

    Raises BadAddress from the constructor for an address or a key that is none, or that would
    send the key unprotected over a network; from every call RefusedCredentials, ApiError,
    NotReachable. Calls that may be made twice are tried again for a second or two.
    """

    def __init__(self, url: str, api_key: str, *, insecure: bool = False) -> None:
        self._transport = Transport(url, api_key, insecure=insecure)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    # -- jobs

    def submit(self, job: Mapping[str, Any]) -> shapes.Job:
        """Submit one job. It has an idempotency key, given or made, so that a retry adds none."""
        return self._call(calls.submit(job))

    def submit_batch(self, jobs: Sequence[Mapping[str, Any]]) -> list[shapes.Submitted]:
        """Submit many, 1,000 a call, each with an idempotency key; return them in their order.

        What is in one call is stored all or nothing.
        """
        return [told for call in calls.batches(jobs) for told in self._call(call)["jobs"]]

    def job(self, job_id: str, *, wait_s: float = 0.0) -> shapes.Job:
        """Return the job; wait up to `wait_s` (30 at most) for its end."""
        return self._call(calls.job(job_id, wait_s))

    def watch(
        self,
        job_id: str,
        *,
        every_s: float = LONGEST_WAIT_S,
        within_s: float | None = None,
        patience_s: float = PATIENCE_S,
    ) -> Iterator[shapes.Job]:
        """Yield the job as it is every `every_s`, and at last as it ended.

        Or as it is after `within_s`. A controller that restarts meanwhile is waited for,
        `patience_s` at most.
        """
        ends_at = None if within_s is None else time.monotonic() + within_s
        heard_at = time.monotonic()
        while True:
            left_s = every_s if ends_at is None else max(0.0, ends_at - time.monotonic())
            try:
                job = self.job(job_id, wait_s=min(every_s, left_s, LONGEST_WAIT_S))
            except NotReachable:
                if left_s == 0 or time.monotonic() - heard_at > patience_s:
                    raise
                time.sleep(LOOK_AGAIN_S)
                continue
            heard_at = time.monotonic()
            yield job
            if job["status"] in TERMINAL or left_s == 0:
                return

    def wait(
        self, job_id: str, *, within_s: float | None = None, patience_s: float = PATIENCE_S
    ) -> shapes.Job:
        """Return the job as it ended, or as it is after `within_s`. As patient as `watch`."""
        last: shapes.Job | None = None
        for job in self.watch(job_id, within_s=within_s, patience_s=patience_s):
            last = job
        if last is None:
            raise AssertionError("watching yields a job or raises")
        return last

    def jobs(self, *, limit: int | None = None, **filters: str | None) -> Iterator[shapes.Job]:
        """Iterate over jobs, newest first; filters as of GET /v1/jobs."""
        return self._pages("jobs", limit, lambda size, at: calls.jobs(filters, size, at))

    def events(self, job_id: str, *, limit: int | None = None) -> Iterator[shapes.Event]:
        """Iterate over what happened to a job, oldest first."""
        return self._pages("events", limit, lambda size, at: calls.events(job_id, size, at))

    def cancel(self, job_id: str) -> shapes.Job:
        """End a waiting job at once; ask the holder of a running one to stop."""
        return self._call(calls.cancel(job_id))

    def queue(self) -> shapes.Queue:
        return self._call(calls.queue())

    # -- nodes

    def add_node(self, name: str, **fields: Any) -> shapes.Node:
        return self._call(calls.add_node({"name": name, **fields}))

    def nodes(
        self, *, limit: int | None = None, status: str | None = None
    ) -> Iterator[shapes.Node]:
        return self._pages("nodes", limit, lambda size, at: calls.nodes(status, size, at))

    def node(self, node_id: str) -> shapes.Node:
        return self._call(calls.node(node_id))

    def change_node(self, node_id: str, **fields: Any) -> shapes.Node:
        return self._call(calls.change_node(node_id, fields))

    def retire_node(self, node_id: str) -> None:
        self._call(calls.retire_node(node_id))

    def add_node_key(self, node_id: str, **fields: Any) -> shapes.NewNodeKey:
        return self._call(calls.add_node_key(node_id, fields))

    def node_keys(self, node_id: str, *, limit: int | None = None) -> Iterator[shapes.NodeKey]:
        return self._pages(
            "credentials", limit, lambda size, at: calls.node_keys(node_id, size, at)
        )

    def revoke_node_key(self, node_id: str, credential_id: str) -> None:
        self._call(calls.revoke_node_key(node_id, credential_id))

    # -- models and keys

    def put_model(self, slug: str, **fields: Any) -> shapes.Model:
        return self._call(calls.put_model(slug, fields))

    def models(self, *, limit: int | None = None) -> Iterator[shapes.Model]:
        return self._pages("models", limit, calls.models)

    def model(self, slug: str) -> shapes.Model:
        return self._call(calls.model(slug))

    def delete_model(self, slug: str) -> None:
        self._call(calls.delete_model(slug))

    def add_key(self, name: str, scopes: Sequence[str], **fields: Any) -> shapes.NewApiKey:
        return self._call(calls.add_key({"name": name, "scopes": list(scopes), **fields}))

    def keys(self, *, limit: int | None = None) -> Iterator[shapes.ApiKey]:
        return self._pages("keys", limit, calls.keys)

    def revoke_key(self, key_id: str) -> None:
        self._call(calls.revoke_key(key_id))

    # -- the service

    def alive(self) -> shapes.Alive:
        """Return what /healthz says: the process is there. Needs no good key."""
        return self._call(calls.alive())

    def ready(self) -> shapes.Ready:
        """Return what /readyz says. Raises NotReachable while it says no."""
        return self._call(calls.ready())

    def _call(self, call: Call[T]) -> T:
        return self._transport.call(call)

    def _pages(
        self, name: str, limit: int | None, ask: Callable[[int, str | None], Call[Page]]
    ) -> Iterator[Any]:
        left = limit
        cursor: str | None = None
        while left is None or left > 0:
            page = self._call(ask(PAGE if left is None else left, cursor))
            yield from page[name]
            cursor = page["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(page[name])
