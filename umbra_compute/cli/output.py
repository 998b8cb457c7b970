"""What people and programs see: tables on a terminal, plain columns in a pipe, JSON if asked."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")

_COLOURS: Final = {
    "online": "green",
    "complete": "green",
    "running": "cyan",
    "queued": "blue",
    "draining": "yellow",
    "blocked": "yellow",
    "partial": "yellow",
    "failed": "red",
    "offline": "red",
}

_UNPRINTABLE: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""What moves the cursor, changes colours or turns the line around: not for a node's error text."""

Column = tuple[str, Callable[[Mapping[str, Any]], Any]]


def say_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    click.echo(_UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def is_for_a_program(as_json: bool) -> bool:
    """Tell whether to print a new key as JSON: if asked, and wherever no person reads it.

    A key that is shown once is often piped on, and a sentence around it would have to be cut off.
    """
    return as_json or not sys.stdout.isatty()


def done(told: Mapping[str, Any], sentence: str, *, as_json: bool) -> None:
    """Say what was done: JSON for programs; for people a sentence, out of the way of a pipe."""
    if as_json:
        say_json(told)
    else:
        click.echo(printable(sentence), err=True)


def say_error(text: str) -> None:
    click.echo(printable(text), err=True)


def printable(text: str) -> str:
    """Return `text` without what a terminal would obey; lines stay lines."""
    return _UNPRINTABLE.sub("\ufffd", text)


def live(line: str) -> None:
    """Show `line` in the place of the one before, on a terminal."""
    width = shutil.get_terminal_size().columns - 1
    click.echo(f"\r\033[K{printable(line)[:width]}", nl=False, err=True)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, empty: str) -> None:
    """Print rows as a table on a terminal, as columns split by tabs in a pipe."""
    if not rows:
        click.echo(empty, err=True)
        return
    cells = [[_text(cell(row)) for _, cell in columns] for row in rows]
    if not sys.stdout.isatty():
        for line in [[name for name, _ in columns], *cells]:
            click.echo("\t".join(line))
        return
    from rich.console import Console  # noqa: PLC0415 - 39 ms that a pipe need not pay
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name, _ in columns:
        shown.add_column(name, overflow="fold")  # an id that is cut off cannot be copied
    for line in cells:
        shown.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in line))
    Console().print(shown)


def facts(row: Mapping[str, Any], names: Sequence[str]) -> None:
    """Print one thing, a line per fact; what is not known is left out."""
    width = max(len(name) for name in names)
    for name in names:
        if row[name] not in (None, [], {}):
            click.echo(f"{name:<{width}}  {_text(row[name])}")


def age(time: str | None) -> str:
    """Return how long ago an API time was: 7s, 3m, 5h, 2d."""
    if time is None:
        return "-"
    seconds = (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"


def megabytes(free: int | None, total: int | None) -> str:
    """Return "free/total GB", "?" for what is not known."""
    if free is None and total is None:
        return "-"
    told = ["?" if mb is None else f"{mb / 1024:.1f}" for mb in (free, total)]
    return f"{told[0]}/{told[1]} GB"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return printable(value.replace("\t", " ").replace("\n", " "))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        return printable(json.dumps(value, ensure_ascii=False))
    return str(value)
