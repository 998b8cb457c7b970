"""What happens around every request: its id, one line in the log, and the wait for the schema."""

import asyncio
import re
import time
from typing import Final

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from umbra_compute.errors import DatabaseUnavailable
from umbra_compute.http.context import CODE, MIGRATED, REQUEST_ID
from umbra_compute.ids import uuid7

log = structlog.get_logger(__name__)

_SAFE_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_HEADER: Final = "X-Request-ID"

_ROUTINE: Final = frozenset(
    {
        "/v1/node/heartbeat",
        "/v1/node/claim",
        "/v1/node/renew",
        "/v1/node/jobs/{job_id}/renew",
        "/healthz",
        "/readyz",
    }
)
"""What everybody calls every few seconds: of interest only when it is refused."""


@web.middleware
async def served(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request its id, and log how it ended: never a header, a key or a payload."""
    given = request.headers.get(_HEADER, "")
    request_id = given if _SAFE_ID.fullmatch(given) else str(uuid7())
    request[REQUEST_ID] = request_id
    began = time.monotonic()
    structlog.contextvars.clear_contextvars()  # the task served others on this connection
    with structlog.contextvars.bound_contextvars(request_id=request_id):
        answer = await handler(request)
        resource = request.match_info.route.resource
        route = None if resource is None else resource.canonical
        routine = route in _ROUTINE and answer.status < 400  # noqa: PLR2004
        (log.debug if routine else log.info)(
            "request.served",
            route=route,
            method=request.method,
            status=answer.status,
            code=request.get(CODE),
            duration_ms=round((time.monotonic() - began) * 1000, 1),
        )
    return answer


async def put_request_id(request: web.Request, answer: web.StreamResponse) -> None:
    """For on_response_prepare, so that streams carry the id too."""
    request_id = request.get(REQUEST_ID)
    if request_id is not None:
        answer.headers[_HEADER] = request_id


STARTING_S: Final = 2.0
"""A schema that is there already is found current in a few milliseconds."""


@web.middleware
async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let nobody at tables that are not there yet. Raises DatabaseUnavailable until they are.

    Who calls right after the start waits a moment: the address is known before the tables are.
    """
    if request.path.startswith("/v1/") and not request.app[MIGRATED].is_set():
        try:
            async with asyncio.timeout(STARTING_S):
                await request.app[MIGRATED].wait()
        except TimeoutError:
            raise DatabaseUnavailable from None
    return await handler(request)
