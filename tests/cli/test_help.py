"""Help, completion, and what a command loads before it can say anything."""

from collections.abc import Iterator

import click
import pytest

from tests.cli.process import umbra
from tests.client.stub import Stub, says
from umbra_compute.cli import COMMANDS, root

IN_README_ORDER = [
    *("serve", "migrate", "init", "org", "key", "node", "model", "job", "queue"),
    *("doctor", "demo"),
]


def paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the way to every command and group."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from paths(below, (*path, name))


EVERY = {" ".join(path): path for path in paths(root)}


def found(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), name)
        assert below is not None
        command = below
    return command


@pytest.mark.parametrize("path", EVERY.values(), ids=" ".join)
def test_every_command_says_what_it_is_for(path: tuple[str, ...]) -> None:
    command = found(path)
    assert command.help is not None
    assert command.get_short_help_str(200).endswith(".")
    undocumented = [
        p.name for p in command.params if isinstance(p, click.Option) and p.help is None
    ]
    assert undocumented == []


@pytest.mark.parametrize("path", EVERY.values(), ids=" ".join)
def test_every_command_prints_json_if_asked(path: tuple[str, ...]) -> None:
    command = found(path)
    if isinstance(command, click.Group) or path[0] in ("serve", "demo"):
        return  # they run until they are stopped, or run others
    assert "--json" in [name for option in command.params for name in option.opts]


@pytest.mark.parametrize("path", EVERY.values(), ids=" ".join)
def test_no_command_takes_a_key_from_argv(path: tuple[str, ...]) -> None:
    options = [option for option in found(path).params if isinstance(option, click.Option)]
    takes = [o.name for o in options if not o.is_flag and o.name in ("api_key", "node_key")]
    assert takes == []


async def test_help_lists_the_commands_in_their_order() -> None:
    ran = await umbra("--help")
    listed = ran.out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == IN_README_ORDER == list(COMMANDS)
    assert (ran.code, ran.err) == (0, "")


async def test_help_names_the_program_however_it_was_started() -> None:
    assert (await umbra("job", "submit", "-h")).out.startswith("Usage: umbra-compute job submit ")


async def test_the_version_is_the_distributions() -> None:
    assert (await umbra("--version")).out == "umbra-compute, version 0.1.0\n"


@pytest.mark.parametrize(
    ("words", "wanted"), [("umbra-compute mod", "model"), ("umbra-compute node re", "resume")]
)
async def test_a_shell_completes_commands(words: str, wanted: str) -> None:
    asked = {
        "_UMBRA_COMPUTE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    ran = await umbra(env=asked)
    assert f"plain,{wanted}" in ran.out.splitlines()


SLOW = {"aiohttp", "asyncpg", "structlog", "argon2", "msgspec", "rich", "asyncio"}
"""Of no use to a command that asks one question over HTTP into a pipe."""


@pytest.mark.parametrize(
    "argv", [("--help",), ("--version",), ("job", "submit", "--help"), ("job", "list"), ("queue",)]
)
async def test_a_plain_command_loads_nothing_slow(
    stub: Stub, caller: dict[str, str], argv: tuple[str, ...]
) -> None:
    queue = dict.fromkeys(("queued", "scheduled", "blocked", "running"), 0)
    page: dict[str, object] = {"jobs": [], "next_cursor": None}
    stub.will(says({**queue, **page, "classes": [], "oldest_queued_s": None}))
    ran = await umbra(*argv, env={**caller, "PYTHONPROFILEIMPORTTIME": "1"})
    assert ran.code == 0
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in ran.err.splitlines()}
    assert "click" in loaded
    assert loaded & SLOW == set()
