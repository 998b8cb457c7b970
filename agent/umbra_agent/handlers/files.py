"""What a program leaves in files. It may leave anything: a pipe, a device, a text without end."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

LONGEST_PROGRESS: Final = 64 * 1024  # bytes from the end of the file that are looked at
LONGEST_MESSAGE: Final = 1000  # characters

Progress = dict[str, Any]


class Unusable(Exception):
    """The file is there and cannot be used. The message says why."""


def read(path: Path, limit: int) -> bytes:
    """Return what a plain file holds. Never waits, never holds more than `limit` bytes.

    Raises FileNotFoundError, Unusable.
    """
    with _opened(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Unusable(f"has more than {limit} bytes")
    return data


def progress(path: Path) -> Progress | None:
    """Return what the last line says: {"fraction", "message"}, or the line as the message.

    A line that is still being written counts only if it is the first.
    """
    try:
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - LONGEST_PROGRESS))
            text = file.read(LONGEST_PROGRESS).decode("utf-8", "replace")
    except (FileNotFoundError, Unusable):
        return None
    whole, _, rest = text.rpartition("\n")
    lines = (whole if whole else rest).splitlines()
    return _told(lines[-1]) if lines else None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as exc:
        raise Unusable(f"cannot be read ({exc.strerror})") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise Unusable("is no plain file")
    with os.fdopen(number, "rb") as file:
        yield file


def _told(line: str) -> Progress:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        return {"fraction": None, "message": _message(line)}
    fraction, message = told.get("fraction"), told.get("message")
    if isinstance(fraction, bool) or not isinstance(fraction, int | float):
        fraction = None
    return {
        "fraction": fraction if fraction is not None and 0 <= fraction <= 1 else None,
        "message": _message(message) if isinstance(message, str) else None,
    }


def _message(text: str) -> str:
    """Return text that can be stored: no NUL and no half of a character."""
    sound = text[:LONGEST_MESSAGE].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return sound.replace("\0", "\ufffd")
