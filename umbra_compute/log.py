"""Structured logs: one JSON line per thing that happened, or readable ones on a terminal."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog

_KEY: Final = re.compile(r"(um[nk]_[A-Za-z0-9]{12})_[A-Za-z0-9]+")
"""What looks like a key: its prefix, which is public and finds its row, and its secret."""

Line = MutableMapping[str, Any]


def configure(
    log_format: str | None = None, *, level: int = logging.INFO, stream: TextIO | None = None
) -> None:
    """Log from `level` on to `stream` (stderr) as "json" or "console"; None: by what stream is.

    What libraries log through the standard library comes out the same way.
    """
    out = sys.stderr if stream is None else stream
    as_json = log_format == "json" or (log_format is None and not out.isatty())
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        _plain,
    ]
    render: structlog.types.Processor
    if as_json:
        render = structlog.processors.JSONRenderer(default=str)
    else:
        render = structlog.dev.ConsoleRenderer(
            colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
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
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                render,
                redact,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    logging.getLogger("asyncio").setLevel(max(level, logging.WARNING))


def redact(_: Any, __: str, line: Any) -> str:
    """Cut keys down to their prefixes. Nobody logs one; this is for the day somebody does.

    It reads the line as it is written, so that no name, nesting or traceback is left out.
    """
    return _KEY.sub(r"\1_[redacted]", line)


def _plain(_: Any, __: str, line: Line) -> Line:
    """Ids as text: a line reads the same in both formats."""
    kept = (str, int, float, bool, list, tuple, dict, type(None), BaseException)
    return {n: v if isinstance(v, kept) or n.startswith("_") else str(v) for n, v in line.items()}
