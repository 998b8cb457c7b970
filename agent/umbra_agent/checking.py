"""`umbra-agent check`: would this agent work? Line by line, and nothing is changed by asking."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Final

from umbra_agent.config import Config, Handler
from umbra_agent.controller import Controller
from umbra_agent.errors import CREDENTIALS, FAILED, NOT_REACHABLE, Away, KeyRefused, Refused

ROUTES: Final = {
    "compute:heartbeat": "/v1/node/heartbeat",
    "compute:claim": "/v1/node/renew",
    "compute:complete": "/v1/node/complete",
}
"""A route for each scope that work needs."""

Say = Callable[[bool, str, str], None]


async def check(config: Config, key: str, say: Say) -> int:
    """Say what is well and what is wrong; return the exit status."""
    status = 0
    async with Controller(config.url, key) as controller:
        try:
            node = await controller.myself()
            say(True, "controller", f"{config.url}: node {node['name']}, {node['status']}")
            for scope, route in ROUTES.items():
                if not await controller.may(route):
                    say(False, "scope", f"the key lacks {scope}: make one that has it")
                    status = CREDENTIALS
        except Away as exc:
            say(False, "controller", f"{config.url} does not answer ({exc})")
            return NOT_REACHABLE
        except KeyRefused as exc:
            say(False, "key", str(exc))
            return CREDENTIALS
        except Refused as exc:
            say(False, "controller", f"{config.url} is no controller of ours ({exc})")
            return NOT_REACHABLE
    if status == 0:
        say(True, "key", f"may do {', '.join(ROUTES)}")
    flaws = [flaw for handler in config.handlers for flaw in _flaws(handler)]
    for handler in config.handlers:
        if not any(_flaws(handler)):
            say(True, "handler", f"{', '.join(handler.kinds)}: {handler.argv[0]}")
    for flaw in flaws:
        say(False, "handler", flaw)
    if not config.handlers:
        say(False, "handler", "none: this agent would take no job; add a [[handler]]")
    fine = bool(config.handlers) and not flaws
    return status if status != 0 or fine else FAILED


def _flaws(handler: Handler) -> Iterator[str]:
    """Yield what would keep the program from being started."""
    kinds, program = ", ".join(handler.kinds), handler.argv[0]
    if handler.cwd is not None and not handler.cwd.is_dir():
        yield f"{kinds}: there is no folder {handler.cwd}"
        return
    if "/" in program and handler.cwd is not None:
        program = str(handler.cwd / program)
    path = {**os.environ, **handler.env}.get("PATH")
    if shutil.which(program, path=path) is None:
        yield f"{kinds}: there is no program {program}"
