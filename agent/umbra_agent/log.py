"""One JSON line on stderr for each thing that happened: a static name, and facts in fields."""

import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any


def info(event: str, **fields: Any) -> None:
    _write("info", event, fields)


def warning(event: str, **fields: Any) -> None:
    _write("warning", event, fields)


def error(event: str, **fields: Any) -> None:
    _write("error", event, fields)


def _write(level: str, event: str, fields: dict[str, Any]) -> None:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"at": at, "level": level, "event": event, **fields}, default=str)
    with suppress(OSError):  # nobody reads the log; the work goes on
        os.write(sys.stderr.fileno(), line.encode() + b"\n")  # one write: lines stay whole
