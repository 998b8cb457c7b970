"""Bad bodies made from a good one, for any route.

    @pytest.mark.parametrize("bad", variants({"name": "x"}, NewApiKey), ids=str)
    async def test_bad_input_is_named(client, admin, bad):
        await assert_refused(client, "POST", "/v1/keys", bad, headers=admin.headers)

Add what only that route refuses as further `Bad` values.
"""

import copy
import io
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from uuid import UUID

import attrs
import msgspec
from aiohttp.test_utils import TestClient

from umbra_compute.http import wire

JSON_TYPE = "application/json"
INSIDE = "2^63 inside"
NOT_STORABLE = (("NUL", "\x00"), ("half a surrogate", "\ud800"))


@attrs.frozen
class Bad:
    what: str
    body: bytes
    path: str | None = "$"  # None: the fault has no place
    code: str = "invalid_body"
    status: int = 422
    content_type: str | None = JSON_TYPE

    def __str__(self) -> str:
        return self.what


async def assert_refused(
    client: "TestClient[Any, Any]",
    method: str,
    url: str,
    bad: Bad,
    *,
    headers: Mapping[str, str],
) -> None:
    """Send it; the answer has the status and code, and names the place."""
    types = {} if bad.content_type is None else {"Content-Type": bad.content_type}
    async with client.request(
        method,
        url,
        data=io.BytesIO(bad.body),  # a body of 1 MiB as bytes makes aiohttp warn
        headers={**headers, **types},
        skip_auto_headers=["Content-Type"],
    ) as answer:
        problem = await answer.json(content_type="application/problem+json")
    assert (answer.status, problem["code"]) == (bad.status, bad.code), problem
    if bad.path is not None:
        assert bad.path in [fault["path"] for fault in problem["errors"]], problem


def variants(
    good: dict[str, Any],
    kind: type[msgspec.Struct],
    *,
    limit_bytes: int = wire.LIMIT_BYTES,
    lenient: tuple[str, ...] = (),
) -> list[Bad]:
    """Return what must be refused, given a body that is accepted and the type it is read as.

    Fields that `good` has are changed one by one, nested ones too; fields that it lacks are
    added with wrong values. `lenient` texts are kept whatever is in them.
    """
    found = list(_whole(good, limit_bytes)) + list(_struct(good, kind, (), lenient))
    return list(
        {str(bad): Bad(**attrs.asdict(bad)) for bad in map(_finished(good), found)}.values()
    )


@attrs.frozen
class _Change:
    """`value` at `place`; MISSING takes it away. The fault is expected at `path`."""

    what: str
    place: tuple[str | int, ...]
    value: Any
    path: str


_MISSING = object()


def _finished(good: dict[str, Any]) -> Any:
    def finish(one: "Bad | _Change") -> Bad:
        if isinstance(one, Bad):
            return one
        body = copy.deepcopy(good)
        target: Any = body
        for step in one.place[:-1]:
            target = target[step]
        if one.value is _MISSING:
            del target[one.place[-1]]
        else:
            target[one.place[-1]] = one.value
        return Bad(f"{one.path} {one.what}", json.dumps(body).encode(), one.path)

    return finish


def _whole(good: dict[str, Any], limit_bytes: int) -> Iterator[Bad]:
    text = json.dumps(good)
    tail = text[1:] if good else "}"
    comma = ", " if good else ""
    yield Bad("nothing", b"", code="malformed_json")
    yield Bad("cut off", text[:-1].encode(), code="malformed_json")
    yield Bad("two values", (text + text).encode(), code="malformed_json")
    yield Bad("no UTF-8", b'{"zz": "\xff"' + comma.encode() + tail.encode(), code="malformed_json")
    yield Bad("UTF-16", text.encode("utf-16"), code="malformed_json")
    yield Bad("a list", f"[{text}]".encode())
    yield Bad("null", b"null")
    for literal in ("NaN", "Infinity", "-Infinity"):
        body = f'{{"zz": {literal}{comma}{tail}'
        yield Bad(literal, body.encode(), "$.zz", "malformed_json")
    twice = f'{{"zz": 1, "zz": 1{comma}{tail}'
    yield Bad("a key twice", twice.encode(), "$.zz", "malformed_json")
    deep = f'{{"zz": {"[" * 65}{"]" * 65}{comma}{tail}'
    yield Bad("65 levels", deep.encode(), None, "malformed_json")
    deeper = f'{{"zz": {"[" * 100_000}'
    yield Bad("100,000 levels", deeper.encode(), None, "malformed_json")
    yield Bad("unknown field", f'{{"zz": 1{comma}{tail}'.encode(), "$.zz")
    yield Bad("2^63", f'{{"zz": {2**63}{comma}{tail}'.encode(), "$.zz")
    yield Bad("5,000 digits", f'{{"zz": {"9" * 5000}{comma}{tail}'.encode(), "$.zz")
    yield Bad("1e999", f'{{"zz": 1e999{comma}{tail}'.encode(), "$.zz")
    yield Bad("NUL in a key", f'{{"z\\u0000": 1{comma}{tail}'.encode(), '$["z\\u0000"]')
    for declared in ("text/plain", "application/json; charset=latin-1", None):
        what = f"as {declared}"
        yield Bad(what, text.encode(), None, "unsupported_media_type", 415, declared)
    padding = b" " * (limit_bytes - len(text) + 1)
    yield Bad("too large", text.encode() + padding, None, "too_large", 413)


def _struct(
    good: dict[str, Any],
    kind: type[msgspec.Struct],
    place: tuple[str | int, ...],
    lenient: tuple[str, ...] = (),
) -> Iterator[_Change]:
    if place:
        yield _Change("unknown field", (*place, "zz"), 1, _path((*place, "zz")))
    for field in msgspec.structs.fields(kind):
        here = (*place, field.encode_name)
        if field.required:
            yield _Change("missing", here, _MISSING, _path(here))
        wanted = _members(field.type)
        for what, value in _wrong(wanted, lenient=field.encode_name in lenient):
            inside = ".a[0]" if what == INSIDE else ""
            yield _Change(what, here, value, _path(here) + inside)
        if field.encode_name in good:
            yield from _inside(good[field.encode_name], wanted, here)


def _inside(value: Any, wanted: list[Any], place: tuple[str | int, ...]) -> Iterator[_Change]:
    for member in wanted:
        bare, _ = _bare(member)
        if isinstance(value, dict) and isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            yield from _struct(value, bare, place)
        elif isinstance(value, list) and value and _is_list(bare):
            items = _members(get_args(bare)[0])
            for what, wrong in _wrong(items):
                yield _Change(what, (*place, 0), wrong, _path((*place, 0)))
            yield from _inside(value[0], items, (*place, 0))


def _wrong(wanted: list[Any], *, lenient: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield values that none of the union's members takes."""
    kinds = {_json_kind(_bare(member)[0]) for member in wanted}
    if "any" in kinds:
        yield INSIDE, {"a": [2**63]}
        return
    samples: dict[str, Any] = {
        "null": None,
        "bool": True,
        "int": 7,
        "float": 7.5,
        "str": "no-such-word",
        "list": [[]],
        "object": {"zz": 1},
    }
    for name, sample in samples.items():
        if name not in kinds and not (name == "int" and "float" in kinds):
            yield f"is {name}", sample
    if "str" not in kinds and "int" in kinds:
        yield "is a number as text", "7"
    for member in wanted:
        yield from _out_of_bounds(member, lenient)


def _out_of_bounds(member: Any, lenient: bool) -> Iterator[tuple[str, Any]]:
    bare, meta = _bare(member)
    if (
        bare is UUID
        or bare is wire.Timestamp
        or (isinstance(bare, type) and issubclass(bare, Enum))
    ):
        yield "is another word", "no-such-word"
    elif bare is str and not lenient:
        for what, text in NOT_STORABLE:
            yield f"holds {what}", f"a{text}b"
    if meta.ge is not None:
        yield "is too small", meta.ge - 1
    if meta.gt is not None:
        yield "is not large enough", meta.gt
    if meta.le is not None:
        yield "is too large", meta.le + 1
    filling: Any = "a" if bare is str else [None]
    if meta.min_length:
        yield "is too short", filling * (meta.min_length - 1)
    if meta.max_length is not None and bare is str:
        yield "is too long", filling * (meta.max_length + 1)


def _members(kind: Any) -> list[Any]:
    if get_origin(kind) in (Union, UnionType):
        return [one for member in get_args(kind) for one in _members(member)]
    return [] if kind is msgspec.UnsetType else [kind]


def _bare(kind: Any) -> tuple[Any, msgspec.Meta]:
    if get_origin(kind) is Annotated:
        bare, *metas = get_args(kind)
        return bare, next(meta for meta in metas if isinstance(meta, msgspec.Meta))
    return kind, msgspec.Meta()


def _is_list(bare: Any) -> bool:
    return get_origin(bare) in (list, tuple, set, frozenset)


def _json_kind(bare: Any) -> str:
    if bare in (NoneType, None):
        return "null"
    if bare in (Any, wire.Json):
        return "any"
    if _is_list(bare):
        return "list"
    if get_origin(bare) is dict or issubclass(bare, msgspec.Struct):
        return "object"
    if issubclass(bare, str | UUID | datetime):
        return "str"
    return {bool: "bool", int: "int", float: "float"}[bare]


def _path(place: tuple[str | int, ...]) -> str:
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in place]
    return "$" + "".join(steps)
