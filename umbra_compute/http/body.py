"""From bytes to a tree of plain values, refusing what two readers would read differently.

Python's json lets through NaN, duplicate keys, lone surrogates and integers of any length, none
of which PostgreSQL or another reader would take as they stand. The parser's hooks only note that
something may be wrong; where is found by a walk over the tree, which a clean body never pays for.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from umbra_compute.errors import Fault, InvalidBody, MalformedJson

MAX_DEPTH: Final = 64
"""Levels of objects and lists. Far above what a payload needs, far below any parser's limit."""

MAX_FAULTS: Final = 100
"""Faults told in one answer, so that a bad body cannot ask for a longer reply than itself."""

INT64: Final = range(-(2**63), 2**63)

_INT64_DIGITS: Final = 20  # sign included; longer texts are not even converted, which is quadratic
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL has no text for these
_ESCAPED: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_KEY_SHOWN: Final = 100  # characters

_NOT_JSON: Final = "expected JSON in UTF-8"


class _Doubled(dict[str, Any]):
    """An object in which a key stands twice."""

    key: str


class _NoNumber(float):
    """NaN or Infinity, which JSON does not have."""


class _TooBig(int):
    """An integer that does not fit into 64 bits. Its value is not kept."""


class _Parser:
    """One use of the decoder. `suspect` grows true when the tree needs the walk."""

    def __init__(self, *, control_characters: bool) -> None:
        self.suspect = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=self._constant,
            strict=not control_characters,
        )

    def tree(self, text: str) -> Any:
        return self._decoder.decode(text)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        self.suspect = True
        doubled = _Doubled(members)
        doubled.key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return doubled

    def _int(self, digits: str) -> int:
        if len(digits) < _INT64_DIGITS - 1:
            return int(digits)
        if len(digits) <= _INT64_DIGITS and (value := int(digits)) in INT64:
            return value
        self.suspect = True
        return _TooBig(0)

    def _float(self, digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            self.suspect = True
        return value

    def _constant(self, _: str) -> float:
        self.suspect = True
        return _NoNumber("nan")


def parse(raw: bytes, *, lenient: tuple[str, ...] = ()) -> Any:
    """Return the tree of dict, list, str, int, float, bool and None that `raw` spells.

    `lenient` names members of the top object whose text is kept whatever is in it: NULs, lone
    surrogates and bytes that are no UTF-8 become U+FFFD. (Bytes are replaced in the whole body,
    since nobody knows to which member they belong; so only for routes whose other texts are ids.)

    Raises MalformedJson for what is no JSON, or JSON that is read in more than one way;
    InvalidBody for values that cannot be stored (NUL, lone surrogates, integers beyond 64 bits,
    numbers beyond a double). Both name each place.
    """
    try:
        text = raw.decode("utf-8", "replace" if lenient else "strict")
    except UnicodeDecodeError as exc:
        raise MalformedJson(("$", f"byte {exc.start} is not UTF-8")) from None
    parser = _Parser(control_characters=bool(lenient))
    try:
        tree = parser.tree(text)
    except json.JSONDecodeError as exc:
        where = f"{exc.msg} at line {exc.lineno} column {exc.colno}"
        raise MalformedJson(("$", f"{_NOT_JSON}: {where}")) from None
    except RecursionError:
        raise MalformedJson(("$", f"nested deeper than {MAX_DEPTH} levels")) from None
    if lenient and isinstance(tree, dict):
        for name in lenient:
            if isinstance(tree.get(name), str):
                tree[name] = _UNSTORABLE.sub("\ufffd", tree[name])
    if parser.suspect or text.count("{") + text.count("[") > MAX_DEPTH or _may_be_unstorable(text):
        _refuse_faults(tree)
    return tree


def step(path: str, key: str) -> str:
    """Return the path of a member: $.name, or $["a name"] if it is no plain word."""
    if _PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}"
    return f"{path}[{json.dumps(key[:_KEY_SHOWN])}]"


def _may_be_unstorable(text: str) -> bool:
    # A raw NUL only gets here through a lenient read; raw surrogates are no UTF-8.
    return "\x00" in text or _ESCAPED.search(text) is not None


def _refuse_faults(tree: Any) -> None:
    malformed: list[Fault] = []
    invalid: list[Fault] = []
    for fault, ambiguous in _walk(tree, "$", 1):
        (malformed if ambiguous else invalid).append(fault)
        if len(malformed) + len(invalid) == MAX_FAULTS:
            break
    if malformed:
        raise MalformedJson(*malformed)
    if invalid:
        raise InvalidBody(*invalid)


def _walk(value: Any, path: str, depth: int) -> Iterator[tuple[Fault, bool]]:
    """Yield each fault, and whether it makes the JSON itself bad."""
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            yield (path, "holds a NUL character or half a surrogate pair"), False
    elif isinstance(value, _TooBig):
        yield (path, "expected an integer of at most 64 bits"), False
    elif isinstance(value, _NoNumber):
        yield (path, "NaN and Infinity are not JSON"), True
    elif isinstance(value, float):
        if math.isinf(value):
            yield (path, "expected a number that a double can hold"), False
    elif isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            yield (path, f"nested deeper than {MAX_DEPTH} levels"), True
            return
        yield from _members(value, path, depth)


def _members(
    value: dict[str, Any] | list[Any], path: str, depth: int
) -> Iterator[tuple[Fault, bool]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]", depth + 1)
        return
    if isinstance(value, _Doubled):
        yield (step(path, value.key), "stands twice in one object"), True
    for key, item in value.items():
        if _UNSTORABLE.search(key):
            yield (step(path, key), "the key holds a NUL character or half a surrogate pair"), False
        yield from _walk(item, step(path, key), depth + 1)
