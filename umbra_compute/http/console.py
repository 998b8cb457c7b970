"""The console's few files. They hold no data: the page reads the API with the viewer's key."""

from importlib import resources
from typing import Final

from aiohttp import web

from umbra_compute.errors import RouteNotFound

routes = web.RouteTableDef()

FILES: Final = {
    "index.html": "text/html",
    "console.css": "text/css",
    "console.js": "text/javascript",
}

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def _assets() -> dict[str, bytes]:
    folder = resources.files("umbra_compute.console")
    return {name: (folder / name).read_bytes() for name in FILES}


_ASSETS: Final = _assets()  # 10 kB, read once: no disk on the event loop


@routes.get("/console")
async def without_slash(request: web.Request) -> web.Response:
    raise web.HTTPPermanentRedirect("/console/")


@routes.get("/console/")
async def index(request: web.Request) -> web.Response:
    return _answer("index.html")


@routes.get("/console/{name}")
async def asset(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in FILES:
        raise RouteNotFound(request.path)
    return _answer(name)


def _answer(name: str) -> web.Response:
    return web.Response(
        body=_ASSETS[name], content_type=FILES[name], charset="utf-8", headers=HEADERS
    )
