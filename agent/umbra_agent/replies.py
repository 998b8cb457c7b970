"""What an answer of the controller holds at least. Pure.

A proxy, a portal or another server may answer 200 with something else: an agent that took it at
its word would break, and its jobs with it.
"""

from collections.abc import Mapping
from typing import Any, Final

Shape = type | tuple[type, ...] | Mapping[str, "Shape"] | list["Shape"]

_NUMBER: Final = (int, float)

ANYTHING: Final[Shape] = {}
NODE: Final[Shape] = {"name": str, "status": str}
HEARD: Final[Shape] = {
    "status": str,
    "heartbeat_interval_s": _NUMBER,
    "lost_leases": [str],
    "cancel": [str],
    "draining": bool,
}
CLAIMED: Final[Shape] = {
    "jobs": [
        {
            "job": {"id": str, "kind": str, "attempt": int, "requires": {}, "payload": object},
            "lease": {"lease_id": str, "lease_seconds": _NUMBER, "expires_in_s": _NUMBER},
            "placement": {"device_label": str},
        }
    ]
}
RENEWED: Final[Shape] = {"renewed": [str], "lost": [str], "cancel": [str]}


def flaw(told: Any, shape: Shape, at: str = "$") -> str | None:
    """Return the path of the first thing that is missing or of another kind; None: all there."""
    if isinstance(shape, Mapping):
        if not isinstance(told, dict):
            return at
        parts = [(told.get(k, _MISSING), s, f"{at}.{k}") for k, s in shape.items()]
    elif isinstance(shape, list):
        if not isinstance(told, list):
            return at
        parts = [(one, shape[0], f"{at}[{n}]") for n, one in enumerate(told)]
    else:
        return at if told is _MISSING or not isinstance(told, shape) else None
    flaws = (flaw(*part) for part in parts)
    return next((found for found in flaws if found is not None), None)


_MISSING: Final = object()
