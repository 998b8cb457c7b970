"""The kinds of value that fields of wire types have, and how they are read and written."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self, TypeVar

import msgspec
import orjson

T = TypeVar("T")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""Names, kinds, languages, project ids, localities."""

Slug = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""A model's name; may hold ":" and "/"."""

Text = Annotated[str, msgspec.Meta(max_length=4096)]
"""A sentence for people: a reason, a progress message."""

Megabytes = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
"""An exbibyte at most: sums of a thousand of them still fit into 64 bits."""

PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
NotNegativeInt = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
PositiveFloat = Annotated[float, msgspec.Meta(gt=0)]
NotNegativeFloat = Annotated[float, msgspec.Meta(ge=0)]

Seconds = Annotated[float, msgspec.Meta(ge=0, le=10 * 365 * 86_400)]
"""A length of time. Ten years: what is added to the database's clock stays a date."""

ExpirySeconds = Annotated[int, msgspec.Meta(ge=1, le=100 * 365 * 86_400)]
PageLimit = Annotated[int, msgspec.Meta(ge=1, le=500)]  # SPEC §7

_YEARS: Final = range(1970, 2500)
"""Times that are meant, and that stay dates in every zone and in PostgreSQL."""


class Timestamp(datetime):
    """A moment with its offset from UTC, as RFC 3339 spells it."""

    @classmethod
    def of(cls, value: Any) -> Self:
        try:
            moment = msgspec.convert(value, Annotated[datetime, msgspec.Meta(tz=True)])
        except msgspec.ValidationError:
            raise ValueError("expected a time with its offset, 2026-01-02T03:04:05Z") from None
        if moment.year not in _YEARS:
            raise ValueError(f"expected a year from {_YEARS[0]} to {_YEARS[-1]}")
        return cls.fromisoformat(moment.astimezone(UTC).isoformat())


class Json(str):
    """Any JSON value, as its compact text: ready for a jsonb parameter."""

    __slots__ = ()


def dump(value: Any) -> str:
    """Return `value` as compact JSON. 1.0 stays 1.0, and a key order is kept."""
    return orjson.dumps(value).decode()


def decode(value: Any, kind: type[T]) -> T:
    """Return `value`, plain parsed JSON, as a `kind`. Nothing is coerced.

    Raises msgspec.ValidationError for the first fault.
    """
    return msgspec.convert(value, kind, strict=True, dec_hook=_decode_ours)


def _decode_ours(kind: type, value: Any) -> Any:
    if kind is Json:
        return Json(dump(value))
    if kind is Timestamp:
        return Timestamp.of(value)
    raise AssertionError(f"no wire type has fields of {kind}")


def schema_of_ours(kind: type) -> dict[str, object]:
    """Return the JSON Schema of the kinds of value that msgspec does not know."""
    if kind is Json:
        return {}
    if kind is Timestamp:
        return {"type": "string", "format": "date-time"}
    raise NotImplementedError(kind)
