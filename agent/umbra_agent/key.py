"""The node's key: from the environment, a pipe, or systemd; never from argv, never to a file."""

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final, TextIO

from umbra_agent.errors import ConfigurationError

VARIABLE: Final = "UMBRA_NODE_KEY"
CREDENTIAL: Final = "umbra-node-key"  # LoadCredential=umbra-node-key:/path


def take(environment: MutableMapping[str, str], pipe: TextIO | None) -> str:
    """Return the key and take it out of the environment, which jobs inherit.

    `pipe` is standard input with --node-key-stdin, else None.

    Raises ConfigurationError that says which way was tried and what was missing.
    """
    from_environment = environment.pop(VARIABLE, "").strip()
    if pipe is not None:
        given = pipe.readline().strip()
        if not given:
            raise ConfigurationError("Standard input holds no key: the pipe is empty.")
        return given
    if from_environment:
        return from_environment
    if environment.get("CREDENTIALS_DIRECTORY"):
        path = Path(environment["CREDENTIALS_DIRECTORY"]) / CREDENTIAL
        if path.exists():
            given = path.read_text().strip()
            if not given:
                raise ConfigurationError(f"The credential {CREDENTIAL} is empty.")
            return given
    raise ConfigurationError(
        f"There is no key: set {VARIABLE}, pipe it to --node-key-stdin, or pass the systemd "
        f"credential {CREDENTIAL}."
    )


def environment_of_jobs() -> dict[str, str]:
    """Return what a job inherits: this process's environment without what is ours alone."""
    ours = {VARIABLE, "UMBRA_API_KEY", "UMBRA_DSN", "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET",
            "WATCHDOG_USEC", "WATCHDOG_PID"}  # fmt: skip
    return {name: value for name, value in os.environ.items() if name not in ours}
