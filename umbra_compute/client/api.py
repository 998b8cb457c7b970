"""One method per route."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

from umbra_compute.client.transport import Transport

Json = dict[str, Any]

TERMINAL: Final = frozenset({"partial", "complete", "failed", "cancelled"})
LONGEST_WAIT_S: Final = 30.0  # of one call: SPEC §6
BATCH: Final = 1000  # jobs a call: SPEC §6


class Client:
    """Calls one controller as the holder of one API key.

    Raises ClientError from the constructor for an address that is none, or that would send the
    key unprotected over a network; from every call RefusedCredentials, ApiError, NotReachable.
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
        self._transport.close()

    # -- jobs

    def submit(self, job: Mapping[str, Any]) -> Json:
        """Submit one job. It has an idempotency key, given or made, so that a retry adds none."""
        keyed = {"idempotency_key": str(uuid.uuid4()), **job}
        return self._post("/v1/jobs", keyed, repeat=True)

    def submit_all(self, jobs: Sequence[Mapping[str, Any]]) -> list[Json]:
        """Submit many, 1,000 a call; return {id, status, created} of each, in the order given."""
        told: list[Json] = []
        keyed = [{"idempotency_key": str(uuid.uuid4()), **job} for job in jobs]
        for start in range(0, len(keyed), BATCH):
            body = {"jobs": keyed[start : start + BATCH]}
            told += self._post("/v1/jobs/batch", body, repeat=True)["jobs"]
        return told

    def job(self, job_id: str, *, wait_s: float = 0.0) -> Json:
        """Return the job; wait up to `wait_s` (30 at most) for its end."""
        query = f"?{urlencode({'wait_s': wait_s})}" if wait_s else ""
        return self._get(f"/v1/jobs/{_part(job_id)}{query}", waits_s=wait_s)

    def wait(self, job_id: str, *, within_s: float | None = None) -> Json:
        """Return the job when it has ended, or as it is after `within_s`."""
        ends_at = None if within_s is None else time.monotonic() + within_s
        while True:
            left_s = LONGEST_WAIT_S if ends_at is None else max(0.0, ends_at - time.monotonic())
            job = self.job(job_id, wait_s=min(LONGEST_WAIT_S, left_s))
            if job["status"] in TERMINAL or (ends_at is not None and time.monotonic() >= ends_at):
                return job

    def jobs(self, *, limit: int | None = None, **filters: str | None) -> Iterator[Json]:
        """Iterate over jobs, newest first; filters as of GET /v1/jobs."""
        return self._pages("/v1/jobs", "jobs", limit, filters)

    def events(self, job_id: str) -> Iterator[Json]:
        """Iterate over what happened to a job, oldest first."""
        return self._pages(f"/v1/jobs/{_part(job_id)}/events", "events", None, {})

    def cancel(self, job_id: str) -> Json:
        return self._post(f"/v1/jobs/{_part(job_id)}/cancel", {}, repeat=True)

    def queue(self) -> Json:
        return self._get("/v1/queue")

    # -- nodes

    def add_node(self, **fields: Any) -> Json:
        return self._post("/v1/nodes", fields)

    def nodes(self, *, limit: int | None = None, status: str | None = None) -> Iterator[Json]:
        return self._pages("/v1/nodes", "nodes", limit, {"status": status})

    def node(self, node_id: str) -> Json:
        return self._get(f"/v1/nodes/{_part(node_id)}")

    def change_node(self, node_id: str, **fields: Any) -> Json:
        told: Json = self._transport.call(
            "PATCH", f"/v1/nodes/{_part(node_id)}", fields, repeat=True
        )
        return told

    def retire_node(self, node_id: str) -> None:
        self._transport.call("DELETE", f"/v1/nodes/{_part(node_id)}", repeat=True)

    def add_node_key(self, node_id: str, **fields: Any) -> Json:
        return self._post(f"/v1/nodes/{_part(node_id)}/credentials", fields)

    def node_keys(self, node_id: str) -> Iterator[Json]:
        return self._pages(f"/v1/nodes/{_part(node_id)}/credentials", "credentials", None, {})

    def revoke_node_key(self, node_id: str, credential_id: str) -> None:
        path = f"/v1/nodes/{_part(node_id)}/credentials/{_part(credential_id)}"
        self._transport.call("DELETE", path, repeat=True)

    # -- models and keys

    def put_model(self, slug: str, **fields: Any) -> Json:
        told: Json = self._transport.call("PUT", f"/v1/models/{_part(slug)}", fields, repeat=True)
        return told

    def models(self) -> Iterator[Json]:
        return self._pages("/v1/models", "models", None, {})

    def delete_model(self, slug: str) -> None:
        self._transport.call("DELETE", f"/v1/models/{_part(slug)}", repeat=True)

    def add_key(self, **fields: Any) -> Json:
        return self._post("/v1/keys", fields)

    def keys(self) -> Iterator[Json]:
        return self._pages("/v1/keys", "keys", None, {})

    def revoke_key(self, key_id: str) -> None:
        self._transport.call("DELETE", f"/v1/keys/{_part(key_id)}", repeat=True)

    # -- the service

    def ready(self) -> Json:
        """Return what /readyz says. Raises NotReachable while it says no."""
        return self._get("/readyz")

    def _get(self, path: str, *, waits_s: float = 0.0) -> Json:
        told: Json = self._transport.call("GET", path, repeat=True, waits_s=waits_s)
        return told

    def _post(self, path: str, body: Any, *, repeat: bool = False) -> Json:
        told: Json = self._transport.call("POST", path, body, repeat=repeat)
        return told

    def _pages(
        self, path: str, name: str, limit: int | None, filters: Mapping[str, str | None]
    ) -> Iterator[Json]:
        left = limit
        query = {key: value for key, value in filters.items() if value is not None}
        while left is None or left > 0:
            size = 500 if left is None else min(500, left)
            page = self._get(f"{path}?{urlencode({**query, 'limit': str(size)})}")
            yield from page[name]
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]
            left = None if left is None else left - len(page[name])


def _part(text: str) -> str:
    return quote(text, safe="")
