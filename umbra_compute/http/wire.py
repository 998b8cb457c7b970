"""Bodies and queries in, replies out. All routes go through here.

Nothing is coerced: "5" is not 5, true is not 1, 1.0 is no integer, unknown fields are named.
Wire types are msgspec structs, frozen, keyword only, and forbid unknown fields.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from aiohttp import web

from umbra_compute.errors import (
    InvalidBody,
    MalformedJson,
    TooLarge,
    UmbraError,
    UnsupportedMediaType,
)
from umbra_compute.http import body, faults
from umbra_compute.http.query import decode_cursor, encode_cursor, query
from umbra_compute.http.values import (
    ExpirySeconds,
    Json,
    Megabytes,
    Name,
    NotNegativeFloat,
    NotNegativeInt,
    PageLimit,
    PositiveFloat,
    PositiveInt,
    Seconds,
    Slug,
    Text,
    Timestamp,
    decode,
    dump,
)

__all__ = [
    "BATCH_LIMIT_BYTES",
    "LIMIT_BYTES",
    "ExpirySeconds",
    "Json",
    "Megabytes",
    "Name",
    "NotNegativeFloat",
    "NotNegativeInt",
    "PageLimit",
    "PositiveFloat",
    "PositiveInt",
    "Seconds",
    "Slug",
    "Text",
    "Timestamp",
    "decode_cursor",
    "dump",
    "encode_cursor",
    "path_id",
    "query",
    "raw",
    "read",
    "reply",
    "time",
]

T = TypeVar("T")

LIMIT_BYTES: Final = 1024**2
"""Of a body (SPEC §7)."""

BATCH_LIMIT_BYTES: Final = 16 * 1024**2
"""Of the body of a batch route (SPEC §7)."""

_THREAD_FROM_BYTES: Final = 64 * 1024
"""Larger bodies take a millisecond and more to parse, during which nobody else is served."""

_encoder: Final = msgspec.json.Encoder()


async def read(
    request: web.Request,
    kind: type[T],
    *,
    limit_bytes: int = LIMIT_BYTES,
    empty_as: bytes | None = None,
    lenient: tuple[str, ...] = (),
) -> T:
    """Return the body as a `kind`.

    `empty_as` is what no body at all stands for (b"{}" where every field has a default).
    `lenient` names top-level texts in which what cannot be stored is replaced, not refused.

    Raises UnsupportedMediaType, TooLarge, MalformedJson, or InvalidBody with every fault.
    """
    if empty_as is not None and not request.body_exists:
        return _parse(empty_as, kind, lenient)
    _require_json(request)
    payload = await _received(request, limit_bytes)
    if empty_as is not None and not payload:
        payload = empty_as
    if len(payload) > _THREAD_FROM_BYTES:
        return await asyncio.to_thread(_parse, payload, kind, lenient)
    return _parse(payload, kind, lenient)


def reply(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return `value` (a struct, dict or list) as JSON."""
    return web.Response(
        body=_encoder.encode(value),
        status=status,
        headers=headers,
        content_type="application/json",
    )


def raw(text: str | None) -> msgspec.Raw:
    """Return the text of a jsonb column to be embedded as it is; None becomes null."""
    return msgspec.Raw(b"null" if text is None else text.encode())


def time(moment: datetime | None) -> str | None:
    """Return RFC 3339 in UTC, always with microseconds: 2026-01-02T03:04:05.000006Z."""
    if moment is None:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def path_id(request: web.Request, name: str, refusal: Callable[[str], UmbraError]) -> UUID:
    """Return an id from the path. Raises `refusal`: what is no UUID names nothing."""
    text = request.match_info[name]
    try:
        found = UUID(text)
    except ValueError:
        raise refusal(text[:100]) from None
    if str(found) != text.lower():  # UUID() also takes braces, a urn, and no hyphens
        raise refusal(text[:100])
    return found


def _require_json(request: web.Request) -> None:
    if "Content-Encoding" in request.headers:  # a bomb, or bytes that nobody unpacks
        raise UnsupportedMediaType(f"{request.headers['Content-Encoding'][:100]}-encoded")
    if "Content-Type" not in request.headers:
        raise UnsupportedMediaType("nothing")
    charset = request.charset
    if request.content_type != "application/json" or (charset or "utf-8").lower() != "utf-8":
        raise UnsupportedMediaType(request.headers["Content-Type"][:100])


async def _received(request: web.Request, limit_bytes: int) -> bytes:
    if request.content_length is not None and request.content_length > limit_bytes:
        raise TooLarge(limit_bytes)
    received = bytearray()
    try:
        async for chunk in request.content.iter_any():
            received += chunk
            if len(received) > limit_bytes:
                raise TooLarge(limit_bytes)
    except (OSError, web.RequestPayloadError):
        # Not the database's OSError: the caller hung up, or its chunks are no chunks.
        raise MalformedJson(("$", "the body ended early")) from None
    return bytes(received)


def _parse(payload: bytes, kind: type[T], lenient: tuple[str, ...]) -> T:
    tree: Any = body.parse(payload, lenient=lenient)
    try:
        return decode(tree, kind)
    except msgspec.ValidationError:
        raise InvalidBody(*faults.collect(tree, kind)) from None
