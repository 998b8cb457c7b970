"""`umbra-agent`: init, detect, check, run. What a command needs is loaded when it runs."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from umbra_agent import __version__, config, key
from umbra_agent.errors import CONFIGURATION, FAILED, USAGE, ConfigurationError


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{message}: see umbra-agent --help.\n")


def main(argv: list[str] | None = None) -> int:
    """Run the command that argv names; return the exit status (SPEC §8)."""
    parser = _parser()
    told = parser.parse_args(argv)
    if told.command is None:
        parser.print_help()
        return 0
    try:
        status: int = told.command(told)
    except ConfigurationError as exc:
        sys.stderr.write(f"{exc}\n")
        return CONFIGURATION
    except KeyboardInterrupt:
        return 130  # as a shell counts SIGINT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _parser() -> Parser:
    parser = Parser(prog="umbra-agent", description="Runs work for an Umbra Compute controller.")
    parser.add_argument("--version", action="version", version=f"umbra-agent {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    init = commands.add_parser("init", help="Write a configuration to begin with.")
    init.add_argument("path", nargs="?", type=Path, default=Path("umbra-agent.toml"))
    init.add_argument("--force", action="store_true", help="Replace a file that is there.")
    init.set_defaults(command=_init)

    detect = commands.add_parser("detect", help="Show what this machine will report, and why.")
    detect.add_argument("--json", action="store_true", help="Print JSON for programs.")
    detect.set_defaults(command=_detect)

    check = commands.add_parser("check", help="Check controller, key and handlers, line by line.")
    check.set_defaults(command=_check)

    run = commands.add_parser("run", help="Work until SIGTERM or the stop file.")
    run.add_argument(
        "--power-cut-on-claim", action="store_true", help="Exit 137 at the first job (to show it)."
    )
    run.set_defaults(command=_run)
    for command in (detect, check, run):
        command.add_argument("--config", type=Path, help="The TOML file (UMBRA_CONFIG).")
    for command in (check, run):
        command.add_argument("--url", help="The controller's address (UMBRA_URL).")
        command.add_argument(
            "--node-key-stdin", action="store_true", help="Read the key from standard input."
        )
    return parser


def _init(told: argparse.Namespace) -> int:
    path: Path = told.path
    if path.exists() and not told.force:
        sys.stderr.write(f"{path} is there already: name another file, or use --force.\n")
        return FAILED
    try:
        path.write_text(config.EXAMPLE, encoding="utf-8")
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be written: {exc.strerror}.") from None
    sys.stdout.write(f"Wrote {path}. Edit it, then: umbra-agent check --config {path}\n")
    return 0


def _detect(told: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    from umbra_agent.devices.detection import Detector  # noqa: PLC0415

    settings = config.load(told.config, os.environ)
    work_dir = Path(tempfile.gettempdir()) if settings.work_dir is None else settings.work_dir
    detector = Detector(settings.detect_limit_s, work_dir, key.environment_of_jobs())
    found = asyncio.run(detector.detect())
    devices = found.devices
    if devices is None:
        raise AssertionError("a detection finds something, if only that it cannot look")
    if told.json:
        sys.stdout.write(json.dumps({"devices": devices, "flaw": found.flaw}) + "\n")
        return 0
    columns = ("label", "kind", "ram_free_mb", "ram_total_mb", "compute_units", "healthy", "why")
    rows = [[_text(device.get(name)) for name in columns] for device in devices]
    titles = [name.upper().replace("_", " ") for name in columns]
    widths = [max(len(row[n]) for row in [titles, *rows]) for n in range(len(columns))]
    for row in [titles, *rows]:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")
    reasons = [device.get("health_reason") for device in devices]
    for flaw in dict.fromkeys(why for why in [found.flaw, *reasons] if why is not None):
        sys.stdout.write(f"Not healthy: {flaw}.\n")
    return 0


def _check(told: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415

    from umbra_agent import checking  # noqa: PLC0415

    settings = config.load(told.config, os.environ, told.url)
    _say(True, "configuration", f"{len(settings.handlers)} handlers, {settings.max_jobs} jobs")
    return asyncio.run(checking.check(settings, _key(told), _say))


def _run(told: argparse.Namespace) -> int:
    settings = config.load(told.config, os.environ, told.url)
    secret = _key(told)
    from umbra_agent import runtime  # noqa: PLC0415 - after what can be wrong without it

    return runtime.run(settings, secret, power_cut_on_claim=told.power_cut_on_claim)


def _key(told: argparse.Namespace) -> str:
    key.erase_from_process()
    return key.take(os.environ, sys.stdin if told.node_key_stdin else None)


def _say(ok: bool, what: str, told: str) -> None:
    sys.stdout.write(f"{'ok' if ok else 'WRONG':<6} {what:<14} {told}\n")


def _text(value: object) -> str:
    return "-" if value is None else str(value)
