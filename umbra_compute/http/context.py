"""What a handler finds on the application and on the request."""

import asyncio

from aiohttp import web

from umbra_compute.db import Pool
from umbra_compute.http.authenticator import Authenticator
from umbra_compute.ops.hashing import Hasher

POOL = web.AppKey("pool", Pool)
AUTH = web.AppKey("auth", Authenticator)
HASHER = web.AppKey("hasher", Hasher)

STOPPING = web.AppKey("stopping", asyncio.Event)
"""Set when this controller begins to stop: whoever waits for something answers now."""

REQUEST_ID = web.RequestKey("request_id", str)
"""Taken from X-Request-ID or made by middleware.py; in every answer and log line."""

CODE = web.RequestKey("code", str)
"""The code of the refusal, where there is one, for the log."""
