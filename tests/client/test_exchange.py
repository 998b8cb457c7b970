"""What both clients do alike, without a network."""

import json

import pytest

from tests.client.stub import KEY
from umbra_compute.client import (
    ApiError,
    BadAddress,
    Client,
    NotReachable,
    RefusedCredentials,
    exchange,
)
from umbra_compute.client.exchange import Address, Call

HERE = Address.parse("http://127.0.0.1:8440/", insecure=False)
GET = Call[None]("GET", "/v1/queue")
ONCE = Call[None]("POST", "/v1/nodes", {}, repeat=False)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://127.0.0.1:8440",
            "http://localhost:8440",
            "http://[::1]:8440",
            "http://127.9.9.9",
        ),
        *("https://controller.example", "https://controller.example:8443/umbra/"),
    ],
)
def test_addresses_that_keep_the_key_to_themselves_are_taken(url: str) -> None:
    assert Address.parse(url, insecure=False).url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        *("", "controller", "ftp://controller", "http://", "https://:8440", "http://[::1", "//h"),
        *("http://h:port", "http://h:99999", "https://h/a b", "https://h\n", "https://h/\x1b[31m"),
        *("https://h/?a=1", "https://h/#top"),
    ],
)
def test_what_is_no_address_is_said_in_a_sentence(url: str) -> None:
    with pytest.raises(BadAddress, match=r"no address of a controller: give http\(s\)://HOST:PORT"):
        Address.parse(url, insecure=True)


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(BadAddress) as refused:
        Address.parse("https://admin:hunter2@controller.example", insecure=False)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("host", ["10.0.0.7", "controller.example", "127.0.0.1.example"])
def test_the_key_is_sent_in_the_clear_only_if_told_so(host: str) -> None:
    with pytest.raises(BadAddress, match="unprotected: use https"):
        Client(f"http://{host}:8440", KEY)
    Client(f"http://{host}:8440", KEY, insecure=True).close()


@pytest.mark.parametrize("key", ["", "two words", "umk_a\r\nX-Evil: 1", "ключ", "k" * 201])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(BadAddress) as refused:
        Client("http://127.0.0.1", key)
    assert key == "" or key not in str(refused.value)
    assert refused.value.__context__ is None


def test_the_key_is_in_no_repr() -> None:
    with Client("http://127.0.0.1", KEY) as client:
        assert KEY not in repr(client)
        assert KEY not in repr(vars(client))


def answered(
    status: int, told: object, retry_after: str | None = None
) -> Exception | dict[str, object]:
    content = told if isinstance(told, bytes) else json.dumps(told).encode()
    try:
        given: dict[str, object] = exchange.answered(HERE, status, content, retry_after)
    except (ApiError, NotReachable) as exc:
        return exc
    return given


def test_a_refusal_names_each_bad_field() -> None:
    faults = [{"path": "$.kind", "detail": "required"}]
    refusal = answered(422, {"code": "invalid_body", "detail": "Not valid.", "errors": faults})
    assert isinstance(refusal, ApiError)
    assert (refusal.status, refusal.code, refusal.errors) == (422, "invalid_body", (*faults,))
    assert str(refusal) == "Not valid.\n  $.kind: required"


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_told_apart(status: int) -> None:
    refusal = answered(status, {"code": "missing_scope", "detail": "Lacks jobs:read."})
    assert isinstance(refusal, RefusedCredentials)
    assert str(refusal) == "Lacks jobs:read."


@pytest.mark.parametrize("content", [b"", b"<html>", b"[1]", b'"text"', b"\xff", b"[" * 100_000])
def test_a_refusal_without_a_problem_is_still_told(content: bytes) -> None:
    refusal = answered(503, content, "7")
    assert isinstance(refusal, NotReachable)
    assert refusal.retry_after_s == 7.0
    assert str(refusal).endswith("is away (status 503).")


@pytest.mark.parametrize("content", [b"<html>", b"[1]", b'"text"', b"\xff", b"[" * 100_000])
@pytest.mark.parametrize("status", [200, 404])
def test_what_speaks_no_json_is_no_controller(status: int, content: bytes) -> None:
    refusal = answered(status, content)
    assert isinstance(refusal, NotReachable)
    assert str(refusal).endswith("is no controller: check the address.")


def test_a_redirect_is_not_followed_with_the_key() -> None:
    assert isinstance(answered(302, {}), NotReachable)


@pytest.mark.parametrize("errors", [7, "text", [1], [{"path": "$"}], {"path": 1}])
def test_a_refusal_of_another_make_does_not_break_the_client(errors: object) -> None:
    refusal = answered(409, {"code": 5, "detail": 6, "errors": errors})
    assert isinstance(refusal, ApiError)
    assert str(refusal) == "The controller refused with status 409."


def away(retry_after_s: float | None = None) -> NotReachable:
    return NotReachable("Away.", retry_after_s=retry_after_s)


def test_pauses_grow_and_end() -> None:
    pauses = [exchange.pause_s(GET, attempt, away(), 0.5) for attempt in range(1, 5)]
    first = exchange.BACKOFF_S * 0.75
    assert pauses == [first, 2 * first, 4 * first, None]


def test_a_draw_spreads_clients_over_half_a_pause() -> None:
    assert exchange.pause_s(GET, 1, away(), 0.0) == exchange.BACKOFF_S / 2
    assert exchange.pause_s(GET, 1, away(), 1.0) == exchange.BACKOFF_S


def test_a_controller_that_says_when_is_not_asked_before() -> None:
    assert exchange.pause_s(GET, 1, away(3.0), 0.0) == 3.0 + exchange.BACKOFF_S / 2
    assert exchange.pause_s(GET, 1, away(exchange.LONGEST_PAUSE_S + 1), 0.0) is None


def test_what_may_have_been_done_is_not_done_again() -> None:
    assert exchange.pause_s(ONCE, 1, away(), 0.0) is None
    assert exchange.pause_s(ONCE, 1, NotReachable("Refused.", sent=False), 0.0) is not None


@pytest.mark.parametrize("call", [GET, ONCE])
def test_only_a_refusal_that_says_when_is_repeated(call: Call[None]) -> None:
    def refused(status: int, retry_after_s: float | None) -> float | None:
        exc = ApiError(status, "code", "No.", retry_after_s=retry_after_s)
        return exchange.pause_s(call, 1, exc, 0.0)

    assert refused(429, 1.0) is not None
    assert refused(429, None) is None
    assert refused(409, 1.0) is None


@pytest.mark.parametrize("header", ["Fri, 31 Dec 1999 23:59:59 GMT", "-1", "1.5", "", "9" * 10])
def test_a_retry_after_that_is_no_seconds_is_not_read(header: str) -> None:
    refusal = answered(503, {}, header)
    assert isinstance(refusal, NotReachable)
    assert refusal.retry_after_s is None
