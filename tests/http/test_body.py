"""What is read from bytes, and what is not."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umbra_compute.errors import InvalidBody, InvalidQuery, MalformedJson
from umbra_compute.http import body, faults, wire
from umbra_compute.http.values import decode

storable = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
jsons = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | storable,
    lambda inner: st.lists(inner) | st.dictionaries(storable, inner),
)


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    label: wire.Name
    vram_mb: wire.Megabytes | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sequence: wire.NotNegativeInt
    devices: Annotated[tuple[Device, ...], msgspec.Meta(max_length=3)] | None = None
    models: tuple[wire.Slug | Device, ...] = ()
    measured: dict[str, float | None] | None = None


@given(jsons)
def test_every_storable_value_is_read_as_it_was_written(value: Any) -> None:
    read = body.parse(json.dumps({"v": value}).encode())["v"]
    assert json.dumps(read) == json.dumps(value)


@given(jsons)
def test_a_json_field_keeps_the_value_as_text(value: Any) -> None:
    text = decode(value, wire.Json)
    assert type(text) is wire.Json
    assert json.loads(text) == value


@pytest.mark.parametrize("number", ["1.0", "-0.0", "1e300", "9223372036854775807", "0.1"])
def test_numbers_stay_what_they_were(number: str) -> None:
    text = decode(body.parse(number.encode()), wire.Json)
    assert json.loads(text) == json.loads(number)
    assert type(json.loads(text)) is type(json.loads(number))


@given(st.binary(max_size=200) | jsons.map(lambda value: json.dumps(value).encode()[:-1]))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for lenient in ((), ("error",)):
        with suppress(MalformedJson, InvalidBody):
            body.parse(raw, lenient=lenient)


@pytest.mark.parametrize("depth", [64, 65])
def test_64_levels_are_read_and_65_are_not(depth: int) -> None:
    raw = b"[" * depth + b"]" * depth
    if depth == body.MAX_DEPTH:
        assert body.parse(raw)
    else:
        with pytest.raises(MalformedJson):
            body.parse(raw)


@pytest.mark.parametrize(
    ("raw", "places"),
    [
        ('{"a": [1, {"b": NaN, "c": 1, "c": 2}]}', ["$.a[1].c", "$.a[1].b"]),
        ('{"a": {"b c": -Infinity}}', ['$.a["b c"]']),
    ],
)
def test_each_place_that_is_no_json_is_named(raw: str, places: list[str]) -> None:
    with pytest.raises(MalformedJson) as told:
        body.parse(raw.encode())
    assert [path for path, _ in told.value.faults] == places


@pytest.mark.parametrize(
    "raw",
    [r'"\u0000"', r'"\ud800"', r'"\udfff\ud800"', r'"\uD83D x"', "-9223372036854775809", "1e400"],
)
def test_each_value_that_cannot_be_stored_is_named(raw: str) -> None:
    with pytest.raises(InvalidBody) as told:
        body.parse(f'{{"a": [0, {raw}]}}'.encode())
    assert [path for path, _ in told.value.faults] == ["$.a[1]"]


def test_an_escaped_pair_of_surrogates_is_one_character() -> None:
    assert body.parse(rb'"\ud83d\ude00"') == "\N{GRINNING FACE}"


def test_an_escaped_backslash_before_u0000_is_text() -> None:
    assert body.parse(rb'"\\u0000"') == r"\u0000"


def test_a_lenient_text_keeps_all_that_can_be_kept() -> None:
    raw = b'{"error": "a\\u0000b\\ud800c\xffd\x00e\nf", "n": 1}'
    assert body.parse(raw, lenient=("error",)) == {"error": "a�b�c�d�e\nf", "n": 1}


def test_lenience_is_for_the_named_text_alone() -> None:
    with pytest.raises(InvalidBody) as told:
        body.parse(rb'{"error": "\u0000", "other": "\u0000"}', lenient=("error",))
    assert [path for path, _ in told.value.faults] == ["$.other"]


def test_all_faults_are_named_not_the_first() -> None:
    told = faults.collect(
        {
            "sequence": True,
            "devices": [{"label": "gpu", "vram_mb": -1}, {"frob": 1}, 7],
            "models": ["", {"label": 3}, []],
            "measured": {"load": "high", "free": None},
            "extra": 1,
        },
        Report,
    )
    assert dict(told) == {
        "$.sequence": "expected int, got bool",
        "$.devices[0].vram_mb": "expected int >= 0",
        "$.devices[1].label": "required",
        "$.devices[1].frob": "unknown field",
        "$.devices[2]": "expected object, got int",
        "$.models[0]": "expected str of length >= 1",
        "$.models[1].label": "expected str, got int",
        "$.models[2]": "expected str | object, got array",
        "$.measured.load": "expected float | null, got str",
        "$.extra": "unknown field",
    }


def test_a_list_of_good_items_that_is_too_long_is_named_itself() -> None:
    told = faults.collect({"sequence": 1, "devices": [{"label": "a"}] * 4}, Report)
    assert told == [("$.devices", "expected array of length <= 3")]


def test_the_answer_to_a_thousand_faults_is_bounded() -> None:
    told = faults.collect({"sequence": 1, **{f"k{n}": 1 for n in range(1000)}}, Report)
    assert len(told) == body.MAX_FAULTS + 1
    assert told[-1][0] == "$"


@pytest.mark.parametrize("offset_s", [0, 7200, -34200])
def test_a_time_is_read_with_its_offset_and_written_in_utc(offset_s: int) -> None:
    text = f"2026-01-02T03:04:05.000006{'+' if offset_s >= 0 else '-'}" + (
        f"{abs(offset_s) // 3600:02}:{abs(offset_s) % 3600 // 60:02}"
    )
    moment = decode(text, wire.Timestamp)
    assert moment == datetime(2026, 1, 2, 3, 4, 5, 6, UTC) - timedelta(seconds=offset_s)
    assert wire.time(moment) == moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


@pytest.mark.parametrize(
    "text",
    [
        *("2026-01-02T03:04:05", "2026-01-02", "now", "", 1767322800),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        *("2026-02-30T00:00:00Z", "2026-01-02T25:00:00Z"),
    ],
)
def test_a_time_without_offset_or_sense_is_refused(text: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(text, wire.Timestamp)


def test_a_whole_second_is_written_with_its_microseconds() -> None:
    assert wire.time(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02T03:04:05.000000Z"
    assert wire.time(None) is None


def test_a_cursor_gives_back_what_it_was_made_of() -> None:
    moment, row = datetime(2026, 1, 2, 3, 4, 5, 6, UTC), uuid4()
    cursor = wire.encode_cursor(moment, row)
    assert wire.decode_cursor(cursor, tuple[wire.Timestamp, UUID]) == (moment, row)
    with pytest.raises(InvalidQuery):
        wire.decode_cursor(wire.encode_cursor(row, moment), tuple[wire.Timestamp, UUID])


@given(st.text(max_size=60))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    with suppress(InvalidQuery):
        wire.decode_cursor(text, tuple[wire.Timestamp, UUID])
