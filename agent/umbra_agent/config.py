"""The configuration: a TOML file, with flags and environment above it, all checked."""

import difflib
import ipaddress
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from umbra_agent.errors import ConfigurationError

MOST_JOBS: Final = 1000  # one call renews so many leases
MOST_KINDS: Final = 500  # a heartbeat names so many
LONGEST_KIND: Final = 200  # characters, as the controller takes them

DEFAULT_URL: Final = "http://127.0.0.1:8440"

EXAMPLE: Final = """\
# Umbra agent. The key is not in here: set UMBRA_NODE_KEY, pipe it to `run --node-key-stdin`,
# or let systemd pass it (LoadCredential=umbra-node-key).

[controller]
url = "http://127.0.0.1:8440"      # plain http only to this machine, or with insecure = true

[agent]
max_jobs = 1                       # jobs at a time
# heartbeat_s = 15                 # as the controller says, if left out
# lease_seconds = 60               # how long work may go unrenewed before it is given away
# claim_wait_s = 20                # how long one request waits for work
# drain_s = 30                     # what a stop leaves running jobs to finish
# kill_grace_s = 5                 # between TERM and KILL
# detect_limit_s = 10              # what looking at the devices may take
# work_dir = "/var/tmp/umbra-agent"  # results and progress of jobs; removed after each
# stop_file = "/run/umbra-agent/stop"

[[handler]]
kinds = ["example"]                # which jobs it runs
type = "command"
argv = ["/usr/bin/env", "cat"]     # payload as JSON on its standard input
result = "stdout"                  # or the file named by UMBRA_RESULT_FILE, if left out
# permanent_exit_codes = [64]      # fail without another attempt; 75 gives the job back
# cwd = "/srv/work"
# env = { LANG = "C.UTF-8" }
"""


@attrs.frozen(kw_only=True)
class Handler:
    """How jobs of some kinds are run."""

    kinds: tuple[str, ...]
    argv: tuple[str, ...]
    type: str = "command"
    result: str = "file"
    permanent_exit_codes: frozenset[int] = frozenset()
    cwd: Path | None = None
    env: Mapping[str, str] = attrs.Factory(dict)


@attrs.frozen(kw_only=True)
class Config:
    """What the agent runs with. Seconds throughout."""

    url: str = DEFAULT_URL
    insecure: bool = False
    max_jobs: int = 1
    heartbeat_s: float | None = None  # None: as the controller says
    lease_seconds: int = 60
    claim_wait_s: float = 20.0
    drain_s: float = 30.0
    kill_grace_s: float = 5.0
    detect_limit_s: float = 10.0
    stop_file: Path | None = None
    work_dir: Path | None = None  # None: a temporary one
    handlers: tuple[Handler, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(sorted({kind for handler in self.handlers for kind in handler.kinds}))

    def handler_of(self, kind: str) -> Handler | None:
        return next((handler for handler in self.handlers if kind in handler.kinds), None)


def load(path: Path | None, environment: Mapping[str, str], url: str | None = None) -> Config:
    """Return the configuration: flags (`path`, `url`) > environment > file > default.

    Raises ConfigurationError with one sentence.
    """
    if path is None and environment.get("UMBRA_CONFIG"):
        path = Path(environment["UMBRA_CONFIG"])
    told: dict[str, Any] = {} if path is None else _parsed(path)
    given = _controller(told.get("controller", {})) | _agent(told.get("agent", {}))
    handlers = told.get("handler", [])
    if not isinstance(handlers, list):
        raise ConfigurationError("handler is a list of tables: write [[handler]].")
    given["handlers"] = tuple(_handler(table, n) for n, table in enumerate(handlers, 1))
    if environment.get("UMBRA_URL"):
        given["url"] = environment["UMBRA_URL"]
    if url is not None:
        given["url"] = url
    config = Config(**given)
    check_url(config.url, insecure=config.insecure)
    _check_kinds(config.handlers)
    return config


def check_url(url: str, *, insecure: bool) -> None:
    """Raise ConfigurationError for an address that is none, or that would bare the key."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # a port that is none is found out here
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ConfigurationError(f"{url} is no address of a controller: give http(s)://HOST:PORT.")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("The address of the controller holds no password: the key does.")
    if parts.scheme == "http" and not insecure and not _is_loopback(host):
        raise ConfigurationError(
            f"{url} would send the key unprotected: use https, or set insecure = true."
        )


def _check_kinds(handlers: tuple[Handler, ...]) -> None:
    kinds = [kind for handler in handlers for kind in handler.kinds]
    twice = next((kind for kind in kinds if kinds.count(kind) > 1), None)
    if twice is not None:
        raise ConfigurationError(f"kind {twice!r} has two handlers: leave it in one of them.")
    if len(kinds) > MOST_KINDS:
        raise ConfigurationError(f"{len(kinds)} kinds are more than the {MOST_KINDS} of a node.")


def _parsed(path: Path) -> dict[str, Any]:
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8.") from None
    except tomllib.TOMLDecodeError as exc:
        raise ConfigurationError(f"{path} is no TOML: {exc}.") from None
    _known(told, ("controller", "agent", "handler"), "the file")
    return told


def _controller(table: Any) -> dict[str, Any]:
    readers = {"url": _text, "insecure": _bool}
    return _read(table, readers, "[controller]")


def _agent(table: Any) -> dict[str, Any]:
    readers = {
        "max_jobs": _whole(1, MOST_JOBS),
        "heartbeat_s": _number(0.1, 3600),
        "lease_seconds": _whole(5, 3600),
        "claim_wait_s": _number(0, 30),
        "drain_s": _number(0, 86_400),
        "kill_grace_s": _number(0, 600),
        "detect_limit_s": _number(0.1, 600),
        "stop_file": _path,
        "work_dir": _path,
    }
    return _read(table, readers, "[agent]")


def _handler(table: Any, number: int) -> Handler:
    where = f"[[handler]] {number}"
    readers = {
        "kinds": _kinds,
        "type": _one_of("command"),
        "argv": _texts,
        "result": _one_of("file", "stdout"),
        "permanent_exit_codes": _codes,
        "cwd": _path,
        "env": _variables,
    }
    given = _read(table, readers, where)
    for name in ("kinds", "argv"):
        if name not in given:
            raise ConfigurationError(f"{where}: {name} is missing.")
    return Handler(**given)


def _read(table: Any, readers: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where} is a table.")
    _known(table, tuple(readers), where)
    given = {}
    for name, value in table.items():
        try:
            given[name] = readers[name](value)
        except ValueError as exc:
            raise ConfigurationError(f"{where}: {name}: {exc}.") from None
    return given


def _known(table: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for name in table:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)[0]
            raise ConfigurationError(
                f"{where}: there is no setting {name!r}; the nearest is {near!r}."
            )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("expected a text that is not empty")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError("expected a list of texts that is not empty")
    return tuple(_text(one) for one in value)


def _kinds(value: Any) -> tuple[str, ...]:
    kinds = _texts(value)
    if any(len(kind) > LONGEST_KIND for kind in kinds):
        raise ValueError(f"expected names of at most {LONGEST_KIND} characters")
    return kinds


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _path(value: Any) -> Path:
    return Path(_text(value)).expanduser().absolute()


def _one_of(*words: str) -> Any:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected {' or '.join(words)}")
        return str(value)

    return read


def _number(least: float, most: float) -> Any:
    def read(value: Any) -> float:
        wrong = isinstance(value, bool) or not isinstance(value, int | float)
        if wrong or not least <= value <= most:
            raise ValueError(f"expected a number from {least:g} to {most:g}")
        return float(value)

    return read


def _whole(least: int, most: int) -> Any:
    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"expected a whole number from {least} to {most}")
        return value

    return read


def _codes(value: Any) -> frozenset[int]:
    wrong = ValueError("expected a list of exit codes from 1 to 255")
    if not isinstance(value, list):
        raise wrong
    for one in value:
        if type(one) is not int or not 1 <= one <= 255:  # noqa: PLR2004
            raise wrong
    return frozenset(value)


def _variables(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise ValueError("expected a table of texts")
    for name, text in value.items():
        if not name or "=" in name or "\0" in name + text:
            raise ValueError(f"{name!r} is no variable that a program can be given")
    return dict(value)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
