"""One JSON line per thing that happened, and never a key in it."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
import structlog

from umbra_compute import log
from umbra_compute.model.credentials import Key, KeyKind

KEY = Key.make(KeyKind.NODE)
SECRET = KEY.text.rpartition("_")[2]


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers, root.level, structlog.get_config()
    yield
    root.handlers, level, settings = before
    root.setLevel(level)
    structlog.configure(**settings)


@pytest.fixture
def out(restored: None) -> io.StringIO:
    return io.StringIO()


def test_a_line_is_json_with_time_level_and_what_is_bound(out: io.StringIO) -> None:
    log.configure(stream=out)
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        structlog.get_logger().info("node.drained", node_id=UUID(int=7), live_leases=0)
    line = json.loads(out.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "node.drained",
        "level": "info",
        "request_id": "r-1",
        "node_id": str(UUID(int=7)),
        "live_leases": 0,
    }


def test_what_libraries_log_comes_out_the_same_way(out: io.StringIO) -> None:
    log.configure("json", stream=out)
    logging.getLogger("aiohttp.server").error("bad %s", "request")
    line = json.loads(out.getvalue())
    assert (line["event"], line["level"]) == ("bad request", "error")


def test_what_is_below_the_level_is_not_written(out: io.StringIO) -> None:
    log.configure("json", level=logging.WARNING, stream=out)
    structlog.get_logger().info("lease.expired")
    logging.getLogger("aiohttp").info("served")
    assert out.getvalue() == ""
    structlog.get_logger().warning("database.away")
    assert "database.away" in out.getvalue()


def raised() -> None:
    raise ValueError(f"refused {KEY.text}")


def by_us() -> None:
    try:
        raised()
    except ValueError:
        structlog.get_logger().exception("request.failed")


def by_a_library() -> None:
    try:
        raised()
    except ValueError:
        logging.getLogger("asyncio").exception("Task failed")


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize(
    "write",
    [
        lambda: structlog.get_logger().info(f"key.made {KEY.text}"),
        lambda: structlog.get_logger().info("key.made", key=KEY.text),
        lambda: structlog.get_logger().info("key.made", **{KEY.text: 1}),
        lambda: structlog.get_logger().info("key.made", nested=[{"a": (KEY.text,)}]),
        lambda: structlog.get_logger().info("key.made", raw=KEY.text.encode()),
        lambda: structlog.get_logger().info("key.made", error=ValueError(KEY.text)),
        lambda: structlog.get_logger().info("key.made", url=f"/?key=%20{KEY.text}&b"),
        lambda: logging.getLogger("aiohttp").warning("Authorization: Bearer %s", KEY.text),
        by_us,
        by_a_library,
    ],
)
def test_a_key_is_cut_down_to_its_public_prefix_wherever_it_stands(
    out: io.StringIO, write: Callable[[], None], log_format: str
) -> None:
    log.configure(log_format, stream=out)
    write()
    assert SECRET not in out.getvalue()
    assert f"{KEY.prefix}_[redacted]" in out.getvalue()


def test_words_that_only_begin_like_a_key_stay(out: io.StringIO) -> None:
    log.configure("json", stream=out)
    structlog.get_logger().info("schema.differs", column_names="column_name_of_a_table")
    line = json.loads(out.getvalue())
    assert line["column_names"] == "column_name_of_a_table"


def test_a_traceback_is_in_the_line(out: io.StringIO) -> None:
    log.configure("json", stream=out)
    by_us()
    assert "in raised" in json.loads(out.getvalue())["exception"]
