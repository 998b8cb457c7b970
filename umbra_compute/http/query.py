"""Query parameters, as strictly as bodies; and cursors, which travel in them."""

import base64
import binascii
import re
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeVar, get_args, get_origin
from uuid import UUID

import msgspec
from aiohttp import web

from umbra_compute.errors import Fault, InvalidQuery
from umbra_compute.http import faults
from umbra_compute.http.body import MAX_FAULTS
from umbra_compute.http.values import decode

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

_INT: Final = re.compile(r"-?[0-9]{1,19}")
_FLOAT: Final = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,19})?")
_BOOL: Final = {"true": True, "false": False}
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_CURSOR_CHARS: Final = 2000


def query(request: web.Request, kind: type[S]) -> S:
    """Return the query parameters as a `kind`, a Struct of flat fields.

    Raises InvalidQuery naming each parameter that is unknown, repeated, or not what it should be.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    given: dict[str, Any] = {}
    found: list[Fault] = []
    for name, text in request.query.items():
        shown = name.encode("ascii", "backslashreplace").decode()[:100]
        if name not in fields:
            found.append((shown, "unknown parameter"))
        elif name in given:
            found.append((shown, "given more than once"))
        elif _UNSTORABLE.search(text):
            found.append((shown, "holds a NUL character or half a surrogate pair"))
        else:
            given[name] = _plain(text, fields[name].type)
    for name, field in fields.items():
        if name in given:
            found += faults.collect(given[name], field.type, name)
        elif field.required and name not in request.query:
            found.append((name, "required"))
    if found:
        raise InvalidQuery(*found[:MAX_FAULTS])
    return decode(given, kind)


def encode_cursor(*parts: UUID | datetime | str | int) -> str:
    """Return an opaque text from which decode_cursor gets the same values."""
    return base64.urlsafe_b64encode(msgspec.json.encode(parts)).decode().rstrip("=")


def decode_cursor(cursor: str, kind: type[T]) -> T:
    """Return what encode_cursor was given, as a `kind` such as tuple[Timestamp, UUID].

    Raises InvalidQuery if it is not one of ours.
    """
    try:
        raw = base64.b64decode(cursor[:_CURSOR_CHARS] + "==", b"-_", validate=True)
        return decode(msgspec.json.decode(raw), kind)
    except (binascii.Error, ValueError):  # msgspec's errors are ValueErrors
        raise InvalidQuery(("cursor", "expected the next_cursor of an earlier answer")) from None


def _plain(text: str, kind: Any) -> Any:
    """Return the number or truth that `text` spells, if its field wants one; else the text."""
    wanted = _leaves(kind)
    if int in wanted and _INT.fullmatch(text):
        return int(text)
    if float in wanted and _FLOAT.fullmatch(text):
        return float(text)
    if bool in wanted:
        return _BOOL.get(text, text)
    return text


def _leaves(kind: Any) -> set[Any]:
    if get_origin(kind) is None or (isinstance(kind, type) and issubclass(kind, Enum)):
        return {kind}
    return set().union(*(_leaves(part) for part in get_args(kind)))
