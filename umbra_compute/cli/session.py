"""Where the controller is and which key opens it; or the database itself, for its operator."""

import difflib
import logging
import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import click

from umbra_compute import config as settings_of
from umbra_compute.client import Client
from umbra_compute.config import ConfigurationError, Settings

DEFAULT_URL: Final = "http://127.0.0.1:8440"

_CLIENT: Final[Mapping[str, type]] = {"url": str, "api_key": str, "insecure": bool}
"""What the [client] section of the settings file may hold."""


class NoKey(ConfigurationError):
    """No key was given."""

    def __init__(self) -> None:
        super().__init__("There is no key: set UMBRA_API_KEY, or give it by --api-key-stdin.")


@attrs.frozen(kw_only=True)
class Controller:
    """Where the controller is and how its key comes, by flags."""

    url: str | None
    config: str | None
    insecure: bool
    api_key_stdin: bool

    def client(self) -> Client:
        """Return a client by flag, environment, or the [client] section of the TOML file.

        Raises NoKey, ConfigurationError, BadAddress.
        """
        section = _section(self.config)
        key = _from_stdin() if self.api_key_stdin else _key(section)
        url = section.get("url", DEFAULT_URL) if self.url is None else self.url
        return Client(url, key, insecure=self.insecure or section.get("insecure", False))


@attrs.frozen(kw_only=True)
class Database:
    """Which database, by flags."""

    dsn: str | None
    data_dir: str | None
    config: str | None

    def settings(self) -> Settings:
        """Return the settings with these flags. Raises ConfigurationError."""
        path = None if self.config is None else Path(self.config)
        flags = {"dsn": self.dsn, "data_dir": self.data_dir}
        return settings_of.load(flags, os.environ, path)

    @contextmanager
    def opened(self) -> Iterator[str]:
        """Yield the DSN of the settings, or of our own PostgreSQL, started if it does not run.

        Raises ConfigurationError.
        """
        from umbra_compute import embedded, log  # noqa: PLC0415 - only where it is needed

        log.configure("console", level=logging.WARNING)
        settings = self.settings()
        if settings.dsn is not None:
            yield settings.dsn
            return
        with embedded.database(settings.data_dir) as own:
            yield own


def calls_the_api(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its client as the first parameter, and the options that make one."""

    @wraps(command)
    def calling(**given: Any) -> None:
        with _of(Controller, given).client() as client:
            command(client, **_without(given, Controller))

    return _with(calling, *_API_OPTIONS, _CONFIG_OPTION)


def on_the_database(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its Database as the first parameter, and the options that say which."""

    @wraps(command)
    def calling(**given: Any) -> None:
        command(_of(Database, given), **_without(given, Database))

    return _with(calling, *_DATABASE_OPTIONS, _CONFIG_OPTION)


def on_either(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a Controller and a Database, and the options of both."""

    @wraps(command)
    def calling(**given: Any) -> None:
        rest = _without(_without(given, Controller), Database)
        command(_of(Controller, given), _of(Database, given), **rest)

    return _with(calling, *_API_OPTIONS, *_DATABASE_OPTIONS, _CONFIG_OPTION)


_API_OPTIONS: Final = (
    click.option("--url", envvar="UMBRA_URL", help=f"The controller (UMBRA_URL; {DEFAULT_URL})."),
    click.option("--insecure", is_flag=True, help="Send the key in the clear, to any machine."),
    click.option("--api-key-stdin", is_flag=True, help="Read the key from standard input."),
)
_DATABASE_OPTIONS: Final = (
    click.option("--dsn", help="A PostgreSQL (UMBRA_DSN); without: the controller's own."),
    click.option("--data-dir", help="Where the controller's own lives (UMBRA_DATA_DIR)."),
)
_CONFIG_OPTION: Final = click.option("--config", help="The settings file (UMBRA_CONFIG).")

Given = dict[str, Any]
T = TypeVar("T", Controller, Database)


def _with(command: Callable[..., None], *options: Callable[..., Any]) -> Callable[..., None]:
    for option in reversed(options):
        command = option(command)
    return command


def _of(kind: type[T], given: Given) -> T:
    return kind(**{field.name: given[field.name] for field in attrs.fields(kind)})


def _without(given: Given, kind: type[T]) -> Given:
    names = {field.name for field in attrs.fields(kind)}
    return {name: value for name, value in given.items() if name not in names}


def _key(section: Mapping[str, Any]) -> str:
    given = os.environ.get("UMBRA_API_KEY", "").strip()
    if not given:
        given = section.get("api_key", "").strip()
    if not given:
        raise NoKey
    return given


def _from_stdin() -> str:
    given = sys.stdin.readline().strip()
    if not given:
        raise ConfigurationError("Standard input holds no key: the pipe is empty.")
    return given


def _section(config: str | None) -> dict[str, Any]:
    where = os.environ.get("UMBRA_CONFIG") if config is None else config
    if where is None:
        return {}
    try:
        text = Path(where).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"The settings file {where} cannot be read: {reason}.") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigurationError(f"The settings file {where} is no TOML: {exc}.") from None
    section = table.get("client", {})
    if not isinstance(section, dict):
        raise ConfigurationError(f"{where}: [client] is a section, with {', '.join(_CLIENT)}.")
    for name, value in section.items():
        if name not in _CLIENT:
            near = difflib.get_close_matches(name, _CLIENT, n=1, cutoff=0.0)[0]
            raise ConfigurationError(
                f"{where}: [client] has no setting {name!r}; the nearest is {near!r}."
            )
        if not isinstance(value, _CLIENT[name]):
            wanted = "true or false" if _CLIENT[name] is bool else "a text"
            raise ConfigurationError(f"{where}: [client] {name}: expected {wanted}.")
    return section
