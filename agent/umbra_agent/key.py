"""The node's key: from the environment, a pipe, or systemd; never from argv, never to a file."""

import ctypes
import os
import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final, TextIO

from umbra_agent.errors import ConfigurationError

VARIABLE: Final = "UMBRA_NODE_KEY"
CREDENTIAL: Final = "umbra-node-key"  # LoadCredential=umbra-node-key:/path

SECRETS: Final = (VARIABLE, "UMBRA_API_KEY", "UMBRA_DSN")
"""None of these is a job's business."""

OURS: Final = ("CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")

_SHAPE: Final = re.compile(r"[!-~]{1,200}")  # what can stand in a header
_LONGEST_LINE: Final = 1000


def take(environment: MutableMapping[str, str], pipe: TextIO | None) -> str:
    """Return the key and take it out of the environment, which jobs inherit.

    `pipe` is standard input with --node-key-stdin, else None.

    Raises ConfigurationError that says which way was tried and what was missing.
    """
    from_environment = environment.pop(VARIABLE, "").strip()
    if pipe is not None:
        return _sound(_of_pipe(pipe), "The key from standard input")
    if from_environment:
        return _sound(from_environment, f"The key in {VARIABLE}")
    from_systemd = _of_systemd(environment)
    if from_systemd is not None:
        return _sound(from_systemd, f"The credential {CREDENTIAL}")
    raise ConfigurationError(
        f"There is no key: set {VARIABLE}, pipe it to --node-key-stdin, or pass the systemd "
        f"credential {CREDENTIAL}."
    )


def erase_from_process() -> None:
    """Overwrite secrets in the memory that /proc/PID/environ shows; call it before `take`.

    Taking a variable out of the environment leaves it there, for every job to read.
    """
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    for name in SECRETS:
        address = libc.getenv(name.encode())
        if address is not None and name in os.environ:
            ctypes.memset(address, 0, len(os.environb[name.encode()]))


def environment_of_jobs() -> dict[str, str]:
    """Return what a job inherits: this process's environment without what is ours alone."""
    return {k: v for k, v in os.environ.items() if k not in SECRETS and k not in OURS}


def _of_pipe(pipe: TextIO) -> str:
    try:
        given = pipe.readline(_LONGEST_LINE).strip()
    except UnicodeDecodeError:
        raise ConfigurationError("Standard input holds no key: it is no text.") from None
    if not given:
        raise ConfigurationError("Standard input holds no key: the pipe is empty.")
    return given


def _of_systemd(environment: MutableMapping[str, str]) -> str | None:
    if not environment.get("CREDENTIALS_DIRECTORY"):
        return None
    path = Path(environment["CREDENTIALS_DIRECTORY"]) / CREDENTIAL
    try:
        given = path.read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigurationError(
            f"The credential {CREDENTIAL} cannot be read: {exc.strerror}."
        ) from None
    if not given:
        raise ConfigurationError(f"The credential {CREDENTIAL} is empty.")
    return given


def _sound(key: str, what: str) -> str:
    """Return the key. The refusal does not show it."""
    if _SHAPE.fullmatch(key) is None:
        raise ConfigurationError(f"{what} is none: it holds characters that no key has.")
    return key
