"""Structured logs: one JSON line per thing that happened, or readable ones on a terminal."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog

_KEY: Final = re.compile(r"\b(um[nk]_[a-z0-9]{4})[A-Za-z0-9_]+")

Line = MutableMapping[str, Any]


def configure(
    log_format: str | None = None, *, stream: TextIO | None = None, level: int = logging.INFO
) -> None:
    """Log to `stream` (stderr) as "json" or "console"; None: console on a terminal."""
    out = sys.stderr if stream is None else stream
    as_json = log_format == "json" or (log_format is None and not out.isatty())
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        _plain,
    ]
    last: list[structlog.types.Processor]
    if as_json:
        last = [
            structlog.processors.format_exc_info,
            redact,
            structlog.processors.JSONRenderer(default=str),
        ]
    else:
        last = [redact, structlog.dev.ConsoleRenderer(colors=out.isatty())]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def redact(_: Any, __: str, line: Line) -> Line:
    """Cut keys down to their first letters. Nobody logs one; this is for the day somebody does."""
    return {name: _redacted(value) for name, value in line.items()}


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return _KEY.sub(r"\1[redacted]", value)
    if isinstance(value, dict):
        return {name: _redacted(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(one) for one in value]
    return value


def _plain(_: Any, __: str, line: Line) -> Line:
    """Ids as text: a line reads the same in both formats."""
    kept = (str, int, float, bool, list, tuple, dict, type(None), BaseException)
    return {n: v if isinstance(v, kept) or n.startswith("_") else str(v) for n, v in line.items()}
