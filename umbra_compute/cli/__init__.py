"""People's commands. Each module is loaded when its command runs, so that --help is immediate."""

import importlib
from collections.abc import Mapping
from typing import Final

import click

from umbra_compute.cli.exits import INTERRUPTED, foreseen, status_of
from umbra_compute.cli.output import say_error

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "serve": ("serve:serve", "Run the controller."),
    "migrate": ("database:migrate", "Bring the database's schema up to date."),
    "init": ("database:init", "Make the first organization and its admin key."),
    "org": ("database:org", "Add and list organizations."),
    "key": ("keys:key", "Add, list and revoke API keys."),
    "node": ("nodes:node", "Add, list, drain and retire machines."),
    "model": ("models:model", "Say what models need."),
    "job": ("jobs:job", "Submit, list, show, watch and cancel jobs."),
    "queue": ("queue:queue", "Show what waits, by class."),
    "doctor": ("doctor:doctor", "Check that everything works, line by line."),
    "demo": ("umbra_compute.demo.command:demo", "Watch real work run, and a machine die."),
}


class Lazy(click.Group):
    """A group that knows its commands by name and help, and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        place, attribute = COMMANDS[cmd_name][0].split(":")
        module = place if "." in place else f"umbra_compute.cli.{place}"
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="umbra-compute")
def root() -> None:
    """Hand work that needs models to a machine that can run it, and lose none of it.

    Settings: flag, then environment (UMBRA_URL, UMBRA_API_KEY, UMBRA_DSN, UMBRA_DATA_DIR,
    UMBRA_LISTEN, UMBRA_CONFIG), then the TOML file, then the default.
    """


def run() -> int:
    """Run the command that argv names; return the exit status (SPEC §8).

    If whoever reads the output has enough of it, click exits with 1 and without a word.
    """
    try:
        code = root.main(prog_name="umbra-compute", standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except foreseen() as exc:
        say_error(str(exc))
        return status_of(exc)
    return code if isinstance(code, int) else 0  # a command returns nothing; --help its status
