"""The files that both sides are held to. A changed file is a changed protocol."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

NODE: Final[dict[str, Any]] = json.loads((Path(__file__).parent / "node.json").read_text())
JOB_ID: Final = "3b0c7d52-9a51-4c55-9b1c-5d1f0d3b8a90"
LEASE_ID: Final = "7d1f4f5c-0f5e-4f27-8a43-2a7b9f0c6d11"

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


_ANY: Final[dict[str, Callable[[Any], bool]]] = {
    "ID": lambda told: isinstance(told, str) and _UUID.fullmatch(told) is not None,
    "NODE": lambda told: isinstance(told, str) and _UUID.fullmatch(told) is not None,
    "TIME": lambda told: isinstance(told, str) and _TIME.fullmatch(told) is not None,
    "NAME": lambda told: isinstance(told, str),
    "PLACEMENT": lambda told: isinstance(told, dict),
}


def differences(told: Any, golden: Any, at: str = "$") -> list[str]:
    """Return where an answer is not the golden one; the words of _ANY stand for any such."""
    if isinstance(golden, str) and golden in _ANY:
        return [] if _ANY[golden](told) else [f"{at}: {told!r} is no {golden}"]
    if isinstance(golden, dict) and isinstance(told, dict):
        odd = [f"{at}.{key}" for key in told.keys() ^ golden.keys()]
        both = told.keys() & golden.keys()
        return odd + [d for k in both for d in differences(told[k], golden[k], f"{at}.{k}")]
    if isinstance(golden, list) and isinstance(told, list) and len(golden) == len(told):
        pairs = enumerate(zip(told, golden, strict=True))
        return [d for n, (one, other) in pairs for d in differences(one, other, f"{at}[{n}]")]
    same = type(told) is type(golden) and told == golden
    return [] if same else [f"{at}: {told!r}, not {golden!r}"]
