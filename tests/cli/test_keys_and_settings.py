"""Where the key and the address come from, and what is said when they are of no use."""

from pathlib import Path

import pytest

from tests.cli.process import umbra
from tests.client.stub import KEY, Stub, refuses, says

PAGE: dict[str, object] = {"models": [], "next_cursor": None}
OTHER = KEY.replace("aaaa", "bbbb")


def file(folder: Path, text: str) -> str:
    path = folder / "umbra.toml"
    path.write_text(text)
    return str(path)


async def test_flag_before_environment_before_file(stub: Stub, tmp_path: Path) -> None:
    config = file(tmp_path, f'[client]\nurl = "{stub.url}/file"\napi_key = "{OTHER}"\n')
    env = {"UMBRA_CONFIG": config}
    stub.will(*[says(PAGE)] * 4)
    await umbra("model", "list", env=env)
    env |= {"UMBRA_API_KEY": KEY, "UMBRA_URL": f"{stub.url}/environment"}
    await umbra("model", "list", env=env)
    await umbra("model", "list", "--url", f"{stub.url}/flag", env=env)
    await umbra("model", "list", "--api-key-stdin", env=env, stdin=f"{OTHER}\n")
    assert [(seen.path.split("/")[1], seen.headers["Authorization"]) for seen in stub.seen] == [
        ("file", f"Bearer {OTHER}"),
        ("environment", f"Bearer {KEY}"),
        ("flag", f"Bearer {KEY}"),
        ("environment", f"Bearer {OTHER}"),
    ]


async def test_the_file_of_a_controller_serves_its_operator_too(stub: Stub, tmp_path: Path) -> None:
    text = f'listen = "127.0.0.1:1"\n[client]\nurl = "{stub.url}"\napi_key = "{KEY}"\n'
    stub.will(says(PAGE))
    assert (await umbra("model", "list", "--config", file(tmp_path, text))).code == 0


@pytest.mark.parametrize(
    ("text", "says_so"),
    [
        ('[client]\nurll = "x"', "no setting 'urll'; the nearest is 'url'"),
        ("[client]\nurl = 7", "[client] url: expected a text"),
        ('[client]\ninsecure = "yes"', "[client] insecure: expected true or false"),
        ("client = 7", "[client] is a section"),
        ("[client", "is no TOML"),
        ("\udcff", "it is not UTF-8"),
    ],
)
async def test_a_wrong_setting_is_named(tmp_path: Path, text: str, says_so: str) -> None:
    path = tmp_path / "umbra.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    ran = await umbra("queue", "--config", str(path))
    assert (ran.code, ran.out) == (3, "")
    assert says_so in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "env", "says_so"),
    [
        ((), {}, "There is no key: set UMBRA_API_KEY"),
        ((), {"UMBRA_API_KEY": "  "}, "There is no key"),
        (("--api-key-stdin",), {}, "Standard input holds no key: the pipe is empty."),
        (("--config", "/nowhere.toml"), {}, "/nowhere.toml cannot be read"),
        ((), {"UMBRA_API_KEY": "two words"}, "characters that no key has"),
        (("--url", "nonsense"), {"UMBRA_API_KEY": KEY}, "'nonsense' is no address"),
        (("--url", "http://10.0.0.1"), {"UMBRA_API_KEY": KEY}, "unprotected: use https"),
    ],
)
async def test_what_cannot_be_used_is_a_matter_of_configuration(
    argv: tuple[str, ...], env: dict[str, str], says_so: str
) -> None:
    ran = await umbra("queue", *argv, env=env)
    assert (ran.code, ran.out) == (3, "")
    assert says_so in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("status", "code", "exits"),
    [(401, "unauthorized", 4), (403, "missing_scope", 4), (409, "node_has_leases", 1)],
)
async def test_a_refusal_has_its_status_and_its_sentence(
    stub: Stub, caller: dict[str, str], status: int, code: str, exits: int
) -> None:
    stub.will(refuses(status, code, "What to do."))
    ran = await umbra("queue", "--json", env=caller)
    assert (ran.code, ran.out, ran.err) == (exits, "", "What to do.\n")


async def test_a_controller_that_is_away_is_not_reachable(
    stub: Stub, caller: dict[str, str]
) -> None:
    stub.will(*[refuses(503, "database_unavailable", "The database is away.")] * 9)
    ran = await umbra("queue", env=caller)
    assert (ran.code, ran.err) == (5, "The database is away.\n")


async def test_bad_fields_are_named_to_people(stub: Stub, caller: dict[str, str]) -> None:
    faults = [{"path": "$.requires.vram", "detail": "unknown field"}]
    told = {"code": "invalid_body", "detail": "Not valid.", "errors": faults}
    stub.will(says(told, 422))
    ran = await umbra("job", "submit", "work", "--requires", '{"vram": 1}', env=caller)
    assert (ran.code, ran.err) == (1, "Not valid.\n  $.requires.vram: unknown field\n")
