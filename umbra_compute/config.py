"""Settings of the controller: flag, then environment, then TOML file, then default.

A setting that nobody knows, or that makes no sense, is an error that says so in one sentence.
"""

import difflib
import ipaddress
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs


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
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit():
            raise ValueError("expected HOST:PORT, such as 127.0.0.1:8440")
        if int(port) > 65535:  # noqa: PLR2004
            raise ValueError("a port is at most 65535")
        if host.startswith("["):
            host = str(ipaddress.IPv6Address(host.strip("[]")))
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen(kw_only=True)
class Settings:
    """What `serve` runs with. dsn None: the controller starts its own PostgreSQL."""

    dsn: str | None = None
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


ENVIRONMENT: Final = {
    "dsn": "UMBRA_DSN",
    "listen": "UMBRA_LISTEN",
    "data_dir": "UMBRA_DATA_DIR",
}
"""Settings that the environment may give. UMBRA_CONFIG names the file."""


def load(
    flags: Mapping[str, str | None], environment: Mapping[str, str], config: Path | None = None
) -> Settings:
    """Return the settings. `flags` are texts by setting; None is a flag that was not given.

    Raises ConfigurationError.
    """
    given: dict[str, Any] = {"data_dir": default_data_dir(environment)}
    path = config
    if path is None and "UMBRA_CONFIG" in environment:
        path = Path(environment["UMBRA_CONFIG"])
    if path is not None:
        given |= _from_file(path)
    for name, variable in ENVIRONMENT.items():
        if environment.get(variable):
            given[name] = _read(name, environment[variable], variable)
    for name, text in flags.items():
        if text is not None:
            given[name] = _read(name, text, f"--{name.replace('_', '-')}")
    settings = Settings(**given)
    _check_tls(settings)
    return settings


def default_data_dir(environment: Mapping[str, str]) -> Path:
    """Return where the controller keeps its own PostgreSQL if nobody says otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/umbra-compute")
    base = environment.get("XDG_DATA_HOME")
    home = Path(environment["HOME"]) if "HOME" in environment else Path.home()
    return (Path(base) if base else home / ".local" / "share") / "umbra-compute"


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


def _read(name: str, value: object, where: str) -> Any:
    try:
        return _READERS[name](value)
    except (TypeError, ValueError) as exc:
        raise ConfigurationError(f"{where}: {exc}.") from None


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("expected a text that is not empty")
    return value


def _number(least: float, most: float) -> Callable[[object], float]:
    def read(value: object) -> float:
        wrong = f"expected a number from {least:g} to {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(wrong)
        try:
            number = float(value)
        except ValueError:
            raise ValueError(wrong) from None
        if not least <= number <= most:
            raise ValueError(wrong)
        return number

    return read


def _whole(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        wrong = f"expected a whole number from {least} to {most}"
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(wrong)
        try:
            number = int(value)
        except ValueError:
            raise ValueError(wrong) from None
        if not least <= number <= most:
            raise ValueError(wrong)
        return number

    return read


def _path(value: object) -> Path:
    return Path(_text(value)).expanduser().absolute()


def _file(value: object) -> Path:
    path = _path(value)
    if not os.access(path, os.R_OK):
        raise ValueError(f"{path} is not a file that can be read")
    return path


def _listen(value: object) -> Listen:
    return Listen.parse(_text(value))


def _log_format(value: object) -> str:
    if value not in ("json", "console"):
        raise ValueError("expected json or console")
    return str(value)


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


def _check_tls(settings: Settings) -> None:
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise ConfigurationError("tls_cert and tls_key go together: give both, or neither.")
