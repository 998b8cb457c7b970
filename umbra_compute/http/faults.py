"""Every fault of a value, with its path. msgspec names the first only."""

from collections.abc import Iterator
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from umbra_compute.errors import Fault
from umbra_compute.http.body import MAX_FAULTS, step
from umbra_compute.http.values import decode

_WRAPPED: Final = " - at `"  # msgspec's own path, which is relative to what was converted


def collect(value: Any, kind: Any, path: str = "$") -> list[Fault]:
    """Return what is wrong with `value` as a `kind`; [] if nothing is.

    Called only after a conversion failed, so its cost (one conversion per level) is no matter.
    """
    found: list[Fault] = []
    for fault in _faults(value, kind, path):
        if len(found) == MAX_FAULTS:
            found.append(("$", f"and more: only the first {MAX_FAULTS} faults are named"))
            break
        found.append(fault)
    return found


def _faults(value: Any, kind: Any, path: str) -> Iterator[Fault]:
    try:
        decode(value, kind)
    except msgspec.ValidationError as exc:
        inner = False
        for fault in _inside(value, _narrowed(value, kind), path):
            inner = True
            yield fault
        if not inner:
            yield path, _detail(str(exc), kind)


def _inside(value: Any, kind: Any, path: str) -> Iterator[Fault]:
    origin = get_origin(kind)
    if isinstance(value, dict):
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from _members(value, kind, path)
        elif origin is dict:
            key_kind, item_kind = get_args(kind)
            for key, item in value.items():
                yield from _faults(key, key_kind, step(path, key))
                yield from _faults(item, item_kind, step(path, key))
    elif isinstance(value, list) and origin in (list, tuple, set, frozenset):
        for index, item in enumerate(value):
            yield from _faults(item, get_args(kind)[0], f"{path}[{index}]")


def _members(value: dict[str, Any], kind: type[msgspec.Struct], path: str) -> Iterator[Fault]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for name, field in fields.items():
        if name in value:
            yield from _faults(value[name], field.type, step(path, name))
        elif field.required:
            yield step(path, name), "required"
    for key in value:
        if key not in fields:
            yield step(path, key), "unknown field"


def _narrowed(value: Any, kind: Any) -> Any:
    """Return the one member of a union that a container could be meant as; aliases unwrapped."""
    if get_origin(kind) is Annotated:
        return _narrowed(value, get_args(kind)[0])
    if get_origin(kind) not in (Union, UnionType):
        return kind
    members = [_narrowed(value, member) for member in get_args(kind) if member is not NoneType]
    fitting = [member for member in members if _takes(value, member)]
    return fitting[0] if len(fitting) == 1 else kind


def _takes(value: Any, kind: Any) -> bool:
    origin = get_origin(kind)
    if isinstance(value, dict):
        return origin is dict or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))
    return isinstance(value, list) and origin in (list, tuple, set, frozenset)


def _detail(told: str, kind: Any) -> str:
    for member in (kind, *get_args(kind)):
        if isinstance(member, type) and issubclass(member, Enum) and "Invalid enum" in told:
            return f"expected one of {', '.join(word.value for word in member)}"
    plain = told.partition(_WRAPPED)[0].replace("`", "")
    return plain[:1].lower() + plain[1:]
