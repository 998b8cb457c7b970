"""The request of each route, as a value. Pure: no client, no network."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from umbra_compute.client import shapes
from umbra_compute.client.exchange import Call

Page = dict[str, Any]
"""Rows under the route's own name, and next_cursor."""

TERMINAL: Final = frozenset({"partial", "complete", "failed", "cancelled"})
LONGEST_WAIT_S: Final = 30.0  # of one call: SPEC §6
BATCH: Final = 1000  # jobs a call: SPEC §6
PATIENCE_S: Final = 60.0  # with a controller that is away while somebody waits for a job
LOOK_AGAIN_S: Final = 1.0  # between looks at one that is away
PAGE: Final = 500  # rows a call: SPEC §7


def submit(job: Mapping[str, Any]) -> Call[shapes.Job]:
    return Call("POST", "/v1/jobs", _keyed(job))


def batches(jobs: Sequence[Mapping[str, Any]]) -> Iterator[Call[shapes.Batch]]:
    keyed = [_keyed(job) for job in jobs]
    for start in range(0, len(keyed), BATCH):
        yield Call("POST", "/v1/jobs/batch", {"jobs": keyed[start : start + BATCH]})


def job(job_id: str, wait_s: float = 0.0) -> Call[shapes.Job]:
    query = f"?{urlencode({'wait_s': round(wait_s, 3)})}" if wait_s > 0 else ""
    return Call("GET", f"{_job(job_id)}{query}", waits_s=wait_s)


def jobs(filters: Mapping[str, str | None], limit: int, cursor: str | None) -> Call[Page]:
    return _page("/v1/jobs", filters, limit, cursor)


def events(job_id: str, limit: int, cursor: str | None) -> Call[Page]:
    return _page(f"{_job(job_id)}/events", {}, limit, cursor)


def cancel(job_id: str) -> Call[shapes.Job]:
    return Call("POST", f"{_job(job_id)}/cancel", {})


def queue() -> Call[shapes.Queue]:
    return Call("GET", "/v1/queue")


def add_node(fields: Mapping[str, Any]) -> Call[shapes.Node]:
    return Call("POST", "/v1/nodes", fields, repeat=False)


def nodes(status: str | None, limit: int, cursor: str | None) -> Call[Page]:
    return _page("/v1/nodes", {"status": status}, limit, cursor)


def node(node_id: str) -> Call[shapes.Node]:
    return Call("GET", _node(node_id))


def change_node(node_id: str, fields: Mapping[str, Any]) -> Call[shapes.Node]:
    return Call("PATCH", _node(node_id), fields)


def retire_node(node_id: str) -> Call[None]:
    return Call("DELETE", _node(node_id), repeat=False)


def add_node_key(node_id: str, fields: Mapping[str, Any]) -> Call[shapes.NewNodeKey]:
    return Call("POST", f"{_node(node_id)}/credentials", fields, repeat=False)


def node_keys(node_id: str, limit: int, cursor: str | None) -> Call[Page]:
    return _page(f"{_node(node_id)}/credentials", {}, limit, cursor)


def revoke_node_key(node_id: str, credential_id: str) -> Call[None]:
    return Call("DELETE", f"{_node(node_id)}/credentials/{_part(credential_id)}")


def put_model(slug: str, fields: Mapping[str, Any]) -> Call[shapes.Model]:
    return Call("PUT", _model(slug), fields)


def models(limit: int, cursor: str | None) -> Call[Page]:
    return _page("/v1/models", {}, limit, cursor)


def model(slug: str) -> Call[shapes.Model]:
    return Call("GET", _model(slug))


def delete_model(slug: str) -> Call[None]:
    return Call("DELETE", _model(slug), repeat=False)


def add_key(fields: Mapping[str, Any]) -> Call[shapes.NewApiKey]:
    return Call("POST", "/v1/keys", fields, repeat=False)


def keys(limit: int, cursor: str | None) -> Call[Page]:
    return _page("/v1/keys", {}, limit, cursor)


def revoke_key(key_id: str) -> Call[None]:
    return Call("DELETE", f"/v1/keys/{_part(key_id)}")


def alive() -> Call[shapes.Alive]:
    return Call("GET", "/healthz")


def ready() -> Call[shapes.Ready]:
    return Call("GET", "/readyz")


def _keyed(job: Mapping[str, Any]) -> dict[str, Any]:
    """With a key a lost reply can be asked for again, and adds no second job."""
    if job.get("idempotency_key") is None:
        return {**job, "idempotency_key": str(uuid.uuid4())}
    return dict(job)


def _page(
    path: str, filters: Mapping[str, str | None], limit: int, cursor: str | None
) -> Call[Page]:
    asked = {**filters, "limit": str(min(limit, PAGE)), "cursor": cursor}
    given = {name: value for name, value in asked.items() if value is not None}
    return Call("GET", f"{path}?{urlencode(given)}")


def _job(job_id: str) -> str:
    return f"/v1/jobs/{_part(job_id)}"


def _node(node_id: str) -> str:
    return f"/v1/nodes/{_part(node_id)}"


def _model(slug: str) -> str:
    return f"/v1/models/{_part(slug)}"


def _part(text: str) -> str:
    return quote(text, safe="")
