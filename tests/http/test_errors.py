"""Refusals as answers."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import aiohttp
import asyncpg
import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient
from structlog.testing import capture_logs

from tests.http.conftest import Caller, Client
from umbra_compute import db, errors
from umbra_compute.http import wire
from umbra_compute.http.context import AUTH
from umbra_compute.http.errors import STATUS, problems
from umbra_compute.http.middleware import put_request_id, served

SECRET = "what only the log may know"  # noqa: S105


def test_every_refusal_has_a_status_and_a_code_of_its_own() -> None:
    refusals = set(errors.UmbraError.__subclasses__())
    assert set(STATUS) == refusals
    assert len({refusal.code for refusal in refusals}) == len(refusals)


@pytest.fixture
async def raising(aiohttp_client: AiohttpClient) -> Any:
    """A client of an application whose one route raises what it is told to."""
    raised: list[BaseException] = []

    async def fail(_: web.Request) -> web.Response:
        raise raised[0]

    app = web.Application(middlewares=[served, problems])
    app.on_response_prepare.append(put_request_id)
    app.router.add_get("/fail/{name}", fail)
    client = await aiohttp_client(app)

    async def answer(exc: BaseException) -> tuple[int, dict[str, Any], dict[str, str]]:
        raised[:] = [exc]
        async with client.get("/fail/x") as got:
            assert got.content_type == "application/problem+json"
            return got.status, await got.json(), dict(got.headers)

    return answer


@pytest.mark.parametrize(
    ("refusal", "status", "header"),
    [
        (errors.Unauthorized(), 401, ("WWW-Authenticate", "Bearer")),
        (errors.RateLimited(7), 429, ("Retry-After", "7")),
        (errors.DatabaseUnavailable(), 503, ("Retry-After", "1")),
        (errors.ShuttingDown(), 503, ("Retry-After", "1")),
    ],
    ids=lambda value: getattr(value, "code", ""),
)
async def test_a_refusal_tells_machines_what_to_do(
    raising: Any, refusal: errors.UmbraError, status: int, header: tuple[str, str]
) -> None:
    got, problem, headers = await raising(refusal)
    assert (got, problem["code"], problem["detail"]) == (status, refusal.code, str(refusal))
    assert headers[header[0]] == header[1]
    assert problem["request_id"] == headers["X-Request-ID"]


@pytest.mark.parametrize(
    "away",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        asyncpg.ConnectionDoesNotExistError(),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.ReadOnlySQLTransactionError(),
        asyncpg.InvalidPasswordError(),
        asyncpg.DeadlockDetectedError(),
    ],
    ids=lambda exc: type(exc).__name__,
)
async def test_a_database_that_is_away_is_503_and_not_a_bug(raising: Any, away: Exception) -> None:
    with capture_logs() as logged:
        status, problem, _ = await raising(away)
    assert (status, problem["code"]) == (503, "database_unavailable")
    assert "request.failed" not in [line["event"] for line in logged]


@pytest.mark.parametrize("bug", [KeyError(SECRET), asyncpg.UndefinedColumnError(SECRET)])
async def test_a_bug_is_logged_and_tells_nothing(raising: Any, bug: Exception) -> None:
    with capture_logs() as logged:
        status, problem, _ = await raising(bug)
    assert (status, problem["code"]) == (500, "internal_error")
    assert SECRET not in str(problem)
    line = next(line for line in logged if line["event"] == "request.failed")
    assert (line["log_level"], line["exc_info"]) == ("error", True)


async def test_a_parameter_that_the_driver_cannot_encode_is_a_bug(
    raising: Any, pool: db.Pool
) -> None:
    with pytest.raises(asyncpg.DataError) as told:
        await pool.fetchval("SELECT $1::integer", 2**40)
    assert (await raising(told.value))[0] == 500


async def test_a_stream_that_breaks_is_cut_off_and_not_answered_twice(
    aiohttp_client: AiohttpClient,
) -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"one line\n")
        raise KeyError(SECRET)

    app = web.Application(middlewares=[served, problems])
    app.router.add_get("/stream", stream)
    client: Client = await aiohttp_client(app)
    async with client.get("/stream") as answer:
        assert await answer.content.readline() == b"one line\n"
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/v1", "/healthz/", "/v1/../healthz/x", "/v1/nope/" + "a" * 7000),
        *("/v1/keys/%00", "/v1/keys/%ED%A0%80/x", "/%FF", "/v1/nope?%00=%00"),
    ],
)
async def test_an_unknown_path_is_404_whatever_is_in_it(client: Client, path: str) -> None:
    async with client.get(path) as answer:
        problem = await answer.json()
    assert (answer.status, problem["code"]) == (404, "not_found")


async def test_another_method_is_405_and_told_which(client: Client) -> None:
    async with client.put("/v1/keys") as answer:
        problem = await answer.json()
    assert (answer.status, problem["code"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    "line",
    [
        b"GET /v1/keys/\xff\xfe HTTP/1.1",
        b"GET /v1/keys?limit=\xff HTTP/1.1",
        b"GET /v1/keys?\x00=1 HTTP/1.1",
        b"GET /\x00 HTTP/1.1",
        b"GET " + b"/a" * 20_000 + b" HTTP/1.1",
        b"GET http://[::1/ HTTP/1.1",
        b"GET * HTTP/1.1",
        b"BREW /v1/keys HTTP/1.1",
        b"GET /v1/keys HTTP/9.9",
        b"nonsense",
        b"POST /v1/keys HTTP/1.1\r\nContent-Length: -1",
        b"POST /v1/keys HTTP/1.1\r\nContent-Length: 99999999999999999999",
        b"POST /v1/keys HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz",
        b"GET /v1/keys HTTP/1.1\r\nAuthorization: Bearer \xff\xfe\x80",
        b"GET /v1/keys HTTP/1.1\r\nX-Request-ID: \xff",
    ],
    ids=lambda line: repr(line[:40]),
)
async def test_no_bytes_on_the_wire_are_answered_with_5xx(client: Client, line: bytes) -> None:
    reader, writer = await asyncio.open_connection(client.host, client.port)
    headers = b"\r\nHost: x\r\nConnection: close\r\n\r\n"
    writer.write(line + headers)
    async with asyncio.timeout(5):
        status = (await reader.readline()).split()[1]
    writer.close()
    assert 400 <= int(status) < 500


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2:3", True), ("", False), ("a b", False), ("a" * 129, False)]
)
async def test_a_request_id_is_taken_if_it_is_safe_and_always_returned(
    client: Client, given: str, kept: bool
) -> None:
    async with client.get("/healthz", headers={"X-Request-ID": given}) as answer:
        told = answer.headers["X-Request-ID"]
    assert (told == given) == kept
    assert told


async def test_each_request_is_logged_once_without_its_secrets(client: Client) -> None:
    with capture_logs() as logged:
        await client.get(f"/v1/nodes/{SECRET}/credentials", headers={"Authorization": SECRET})
    assert SECRET not in str(logged)
    (line,) = [line for line in logged if line["event"] == "request.served"]
    assert line["route"] == "/v1/nodes/{node_id}/credentials"
    assert (line["method"], line["status"], line["code"]) == ("GET", 401, "unauthorized")
    assert line["duration_ms"] >= 0


async def test_what_everybody_asks_every_second_is_logged_at_debug(client: Client) -> None:
    with capture_logs() as logged:
        await client.get("/healthz")
    assert [line["log_level"] for line in logged] == ["debug"]


@pytest.mark.parametrize(
    "sent",
    [
        b"Content-Length: 50\r\n\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
async def test_a_body_that_ends_early_is_nobodys_bug(
    app: web.Application,
    client: Client,
    admin: Caller,
    caplog: pytest.LogCaptureFixture,
    sent: bytes,
) -> None:
    async def until(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.01)

    with capture_logs() as logged, caplog.at_level(logging.ERROR):
        _, writer = await asyncio.open_connection(client.host, client.port)
        begin = f"POST /v1/keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin.key}\r\n"
        writer.write(begin.encode() + b"Content-Type: application/json\r\n" + sent)
        await until(lambda: app[AUTH].known)  # the handler has begun to read
        writer.close()
        await until(lambda: logged)
    (line,) = logged
    assert (line["event"], line["status"]) == ("request.served", 422)
    assert not caplog.records


def test_the_limits_are_those_of_the_contract() -> None:
    assert (wire.LIMIT_BYTES, wire.BATCH_LIMIT_BYTES) == (1 << 20, 16 << 20)


async def test_a_detail_that_is_no_unicode_is_told_all_the_same(raising: Any) -> None:
    status, problem, _ = await raising(errors.ModelNotFound("a\udcff"))
    assert (status, problem["detail"][:22]) == (404, r"There is no model a\udcff"[:22])
