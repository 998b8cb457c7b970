"""Settings of the controller: flag, then environment, then TOML file, then default.

A setting that nobody knows, or that makes no sense, is an error that says so in one sentence.
"""

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

_HOST_PORT: Final = re.compile(
    r"(?:\[(?P<address>[^\[\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]{1,5})"
)


class ConfigurationError(Exception):
    """The settings cannot be used. The message is one sentence that says what to change."""


@attrs.frozen
class Listen:
    """Where to accept connections. Port 0: any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Listen":
        """Read HOST:PORT; an IPv6 address stands in brackets. Raises ValueError."""
        shape = _HOST_PORT.fullmatch(text)
        if shape is None:
            raise ValueError("expected HOST:PORT, such as 127.0.0.1:8440 or [::1]:8440")
        port = int(shape["port"])
        if port > 65535:  # noqa: PLR2004
            raise ValueError("a port is at most 65535")
        if shape["address"] is None:
            return cls(shape["host"], port)
        return cls(str(ipaddress.IPv6Address(shape["address"])), port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen(kw_only=True)
class Settings:
    """What `serve` runs with. dsn None: the controller starts its own PostgreSQL."""

    dsn: str | None = attrs.field(default=None, repr=False)  # it may hold a password
    listen: Listen = Listen("127.0.0.1", 8440)
    data_dir: Path = attrs.Factory(lambda: default_data_dir(os.environ))
    heartbeat_stale_s: float = 45.0
    heartbeat_interval_s: float = 15.0
    sweep_interval_s: float = 1.0
    cancel_grace_s: float = 30.0
    pool_size: int = 16
    tls_cert: Path | None = None
    tls_key: Path | None = None
    log_format: str | None = None


ALIKE: Final = 0.88
"""How like one of ours a variable's name is that was meant to be it: UMBRA_DNS is, 0.89."""


def load(
    flags: Mapping[str, str | None], environment: Mapping[str, str], config: Path | None = None
) -> Settings:
    """Return the settings. `flags` are texts by setting; None is a flag that was not given.

    Each setting has a variable, UMBRA_ and its name; an empty one counts as not given.

    Raises ConfigurationError.
    """
    _check_variables(environment)
    given: dict[str, Any] = {"data_dir": default_data_dir(environment)}
    path = config
    if path is None and environment.get("UMBRA_CONFIG"):
        path = Path(environment["UMBRA_CONFIG"])
    if path is not None:
        given |= _from_file(path)
    for name in _READERS:
        variable = _variable(name)
        if environment.get(variable):
            given[name] = _read_text(name, environment[variable], variable)
    for name, text in flags.items():
        if text is not None:
            given[name] = _read_text(name, text, f"--{name.replace('_', '-')}")
    settings = Settings(**given)
    _check_tls(settings)
    return settings


def default_data_dir(environment: Mapping[str, str]) -> Path:
    """Return where the controller keeps its own PostgreSQL if nobody says otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/umbra-compute")
    base = environment.get("XDG_DATA_HOME")
    home = Path(environment["HOME"]) if "HOME" in environment else Path.home()
    # The XDG specification: a path there that is not absolute is to be ignored.
    if base is not None and Path(base).is_absolute():
        return Path(base) / "umbra-compute"
    return home / ".local" / "share" / "umbra-compute"


def _variable(name: str) -> str:
    return f"UMBRA_{name.upper()}"


def _check_variables(environment: Mapping[str, str]) -> None:
    """A misspelt UMBRA_DSN would start an empty database. Other programs' variables pass."""
    ours = {*map(_variable, _READERS), "UMBRA_CONFIG"}
    for variable in environment:
        if not variable.startswith("UMBRA_") or variable in ours or variable in _OTHERS:
            continue
        near = difflib.get_close_matches(variable, ours, n=1, cutoff=ALIKE)
        if near:
            raise ConfigurationError(
                f"There is no variable {variable}; the nearest is {near[0]}: rename or unset it."
            )


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"The settings file {path} cannot be read: {reason}.") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigurationError(f"The settings file {path} is no TOML: {exc}.") from None
    table.pop("client", None)  # the command line's own section
    for name in table:
        if name not in _READERS:
            near = difflib.get_close_matches(name, _READERS, n=1, cutoff=0.0)[0]
            raise ConfigurationError(
                f"{path}: there is no setting {name!r}; the nearest is {near!r}."
            )
    return {name: _read(name, value, f"{path}: {name}") for name, value in table.items()}


def _read_text(name: str, text: str, where: str) -> Any:
    """Read a flag or a variable, where a number is a text that spells one."""
    return _read(name, _spelled(text) if name in _NUMBERS else text, where)


def _spelled(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read(name: str, value: object, where: str) -> Any:
    try:
        return _READERS[name](value)
    except ValueError as exc:
        raise ConfigurationError(f"{where}: {exc}.") from None


# No reader repeats the value: it may be a password in the wrong place.


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a time")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, not {_kind(value)}")
    if not value:
        raise ValueError("expected a text that is not empty")
    return value


def _number(least: float, most: float) -> Callable[[object], float]:
    def read(value: object) -> float:
        wanted = f"expected a number from {least:g} to {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{wanted}, not {_kind(value)}")
        if not least <= value <= most:  # nor is NaN
            raise ValueError(wanted)
        return float(value)

    return read


def _whole(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        wanted = f"expected a whole number from {least} to {most}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{wanted}, not {_kind(value)}")
        if not least <= value <= most:
            raise ValueError(wanted)
        return value

    return read


def _path(value: object) -> Path:
    try:
        return Path(_text(value)).expanduser().absolute()
    except RuntimeError:
        raise ValueError("the home folder that ~ names is not known") from None


def _file(value: object) -> Path:
    path = _path(value)
    if path.is_dir() or not os.access(path, os.R_OK):
        raise ValueError(f"{path} is not a file that can be read")
    return path


def _listen(value: object) -> Listen:
    return Listen.parse(_text(value))


def _log_format(value: object) -> str:
    if value not in ("json", "console"):
        raise ValueError("expected json or console")
    return str(value)


_KINDS: Final[Mapping[type, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a fraction",
    list: "a list",
    dict: "a table",
}

_OTHERS: Final = ("UMBRA_TEST_DSN", "UMBRA_URL", "UMBRA_API_KEY", "UMBRA_NODE_KEY")
"""Variables of the tests, the command line and the agent."""

_READERS: Final[Mapping[str, Callable[[object], Any]]] = {
    "dsn": _text,
    "listen": _listen,
    "data_dir": _path,
    "heartbeat_stale_s": _number(1, 86_400),
    "heartbeat_interval_s": _number(0.1, 3600),
    "sweep_interval_s": _number(0.01, 60),
    "cancel_grace_s": _number(0, 86_400),
    "pool_size": _whole(1, 500),
    "tls_cert": _file,
    "tls_key": _file,
    "log_format": _log_format,
}

_NUMBERS: Final = frozenset(
    {
        "heartbeat_stale_s",
        "heartbeat_interval_s",
        "sweep_interval_s",
        "cancel_grace_s",
        "pool_size",
    }
)


def _check_tls(settings: Settings) -> None:
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise ConfigurationError("tls_cert and tls_key go together: give both, or neither.")
