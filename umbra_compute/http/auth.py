"""Who is calling, and may they. Every handler but the open ones begins with one of these.

A node's key on a route for people, and the other way round, is a good key in the wrong place:
403 that names the scope, not 401, which would send its owner to look for another copy of it.
"""

import re
from typing import Final

import structlog
from aiohttp import web

from umbra_compute.errors import MissingScope, Unauthorized
from umbra_compute.http.context import AUTH
from umbra_compute.model.caller import ApiIdentity, ApiScope, NodeIdentity, NodeScope

_BEARER: Final = re.compile(r"bearer +([!-~]{1,200}) *", re.IGNORECASE)


async def node(request: web.Request, scope: NodeScope) -> NodeIdentity:
    """Return the node that calls. Raises Unauthorized, RateLimited, MissingScope."""
    caller = await _caller(request)
    if not isinstance(caller, NodeIdentity) or scope not in caller.scopes:
        raise MissingScope(scope)
    structlog.contextvars.bind_contextvars(node_id=str(caller.node_id))
    return caller


async def api(request: web.Request, scope: ApiScope) -> ApiIdentity:
    """Return the person or program that calls. Raises Unauthorized, RateLimited, MissingScope."""
    caller = await _caller(request)
    if not isinstance(caller, ApiIdentity) or not caller.holds(scope):
        raise MissingScope(scope)
    structlog.contextvars.bind_contextvars(key_id=str(caller.key_id))
    return caller


async def _caller(request: web.Request) -> NodeIdentity | ApiIdentity:
    given = request.headers.getall("Authorization", [])
    shape = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
    if shape is None:
        raise Unauthorized
    return await request.app[AUTH].identify(
        shape[1], "" if request.remote is None else request.remote
    )
