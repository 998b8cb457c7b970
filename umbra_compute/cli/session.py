"""Where the controller is and which key opens it; or the database itself, for its operator."""

import logging
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from umbra_compute.cli.exits import NoKey
from umbra_compute.client import Client
from umbra_compute.config import ConfigurationError

DEFAULT_URL: Final = "http://127.0.0.1:8440"


def calls_the_api(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its client as the first parameter, and the options that make one."""

    @click.option("--url", envvar="UMBRA_URL", help=f"The controller's address ({DEFAULT_URL}).")
    @click.option(
        "--insecure", is_flag=True, help="Send the key over plain http to other machines."
    )
    @click.option("--api-key-stdin", is_flag=True, help="Read the key from standard input.")
    @wraps(command)
    def calling(
        *args: Any, url: str | None, insecure: bool, api_key_stdin: bool, **kwargs: Any
    ) -> None:
        with client(url, insecure=insecure, api_key_stdin=api_key_stdin) as connected:
            command(connected, *args, **kwargs)

    return calling


def client(url: str | None, *, insecure: bool = False, api_key_stdin: bool = False) -> Client:
    """Return a client by flag, environment, or the [client] section of the TOML file.

    Raises NoKey, ConfigurationError.
    """
    section = _section()
    key = _key(section, from_stdin=api_key_stdin)
    where = url if url is not None else section.get("url", DEFAULT_URL)
    return Client(where, key, insecure=insecure or section.get("insecure", False))


def _key(section: dict[str, Any], *, from_stdin: bool) -> str:
    if from_stdin:
        given = sys.stdin.readline().strip()
        if not given:
            raise ConfigurationError("Standard input holds no key: the pipe is empty.")
        return given
    given = os.environ.get("UMBRA_API_KEY", "").strip()
    if not given:
        given = section.get("api_key", "")
    if not given:
        raise NoKey
    return given


def _section() -> dict[str, Any]:
    if "UMBRA_CONFIG" not in os.environ:
        return {}
    path = Path(os.environ["UMBRA_CONFIG"])
    try:
        section = tomllib.loads(path.read_text(encoding="utf-8")).get("client", {})
    except OSError as exc:
        raise ConfigurationError(
            f"The settings file {path} cannot be read: {exc.strerror}."
        ) from None
    except tomllib.TOMLDecodeError as exc:
        raise ConfigurationError(f"The settings file {path} is no TOML: {exc}.") from None
    for name in section:
        if name not in ("url", "api_key", "insecure"):
            raise ConfigurationError(
                f"{path}: [client] has url, api_key and insecure, but no {name!r}."
            )
    return dict(section)


@contextmanager
def database(dsn: str | None, data_dir: str | None, config: str | None) -> Iterator[str]:
    """Yield the DSN of the settings, or of the embedded server, started if it does not run."""
    from umbra_compute import config as settings_of  # noqa: PLC0415 - only where it is needed
    from umbra_compute import embedded, log  # noqa: PLC0415

    log.configure("console", level=logging.WARNING)
    path = None if config is None else Path(config)
    settings = settings_of.load({"dsn": dsn, "data_dir": data_dir}, os.environ, path)
    if settings.dsn is not None:
        yield settings.dsn
        return
    with embedded.database(settings.data_dir) as own:
        yield own


def on_the_database(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which database."""
    for option in (
        click.option("--config", type=click.Path(), help="The settings file (UMBRA_CONFIG)."),
        click.option("--data-dir", type=click.Path(), help="The controller's own database."),
        click.option("--dsn", help="A PostgreSQL (UMBRA_DSN)."),
    ):
        command = option(command)
    return command
