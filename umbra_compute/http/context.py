"""What a handler finds on the application and on the request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from aiohttp import web

from umbra_compute.coalesce import Coalescer
from umbra_compute.db import Pool
from umbra_compute.http.authenticator import Authenticator
from umbra_compute.model.jobs import NewJob, Submitted
from umbra_compute.model.leases import Completion, Ended, Renewal, Renewed
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.ops.hashing import Hasher
from umbra_compute.wake import Wake

POOL = web.AppKey("pool", Pool)
AUTH = web.AppKey("auth", Authenticator)
HASHER = web.AppKey("hasher", Hasher)
WAKE = web.AppKey("wake", Wake)
CATALOGUE = web.AppKey("catalogue", Catalogue)
HEARTBEAT_STALE_S = web.AppKey("heartbeat_stale_s", float)
HEARTBEAT_INTERVAL_S = web.AppKey("heartbeat_interval_s", float)

# Single calls that arrive together share a statement and a commit.
SUBMIT = web.AppKey("submit", Coalescer[NewJob, Submitted])
RENEW = web.AppKey("renew", Coalescer[Renewal, Renewed])
COMPLETE = web.AppKey("complete", Coalescer[Completion, Ended])

Pending: TypeAlias = Callable[[Pool], Awaitable[Sequence[str]]]
PENDING: web.AppKey[Pending] = web.AppKey("pending")
"""Returns the names of the migrations that the database has not had."""

MIGRATED = web.AppKey("migrated", asyncio.Event)
"""Set once the schema is this release's. Until then /v1 answers as if the database were away."""

STOPPING = web.AppKey("stopping", asyncio.Event)
"""Set when this controller begins to stop: whoever waits for something answers now."""

REQUEST_ID = web.RequestKey("request_id", str)
"""Taken from X-Request-ID or made by middleware.py; in every answer and log line."""

CODE = web.RequestKey("code", str)
"""The code of the refusal, where there is one, for the log."""
