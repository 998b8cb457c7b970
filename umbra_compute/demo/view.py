"""The live picture: bars on a terminal, a line now and then elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import attrs
import click

LINE_S: Final = 2.0
WIDTH: Final = 40


@attrs.frozen
class Picture:
    """The queue and the nodes at one moment."""

    done: int
    total: int
    queue: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]
    done_by: Counter[str]  # node id

    def lines(self) -> list[str]:
        """Return it for a terminal."""
        waiting = self.queue["queued"] + self.queue["blocked"]
        return [
            f"{_bar(self.done, self.total)} {self.done}/{self.total} done",
            f"waiting {waiting}, coming back after a loss {self.queue['scheduled']}",
            *(self._node(node) for node in self.nodes),
        ]

    def line(self) -> str:
        """Return it for a log."""
        told = ", ".join(
            f"{node['name']} {self.done_by[node['id']]}+{node['running_jobs']}"
            f"{'' if node['status'] == 'online' else ' ' + node['status']}"
            for node in self.nodes
        )
        return f"  {self.done:>3}/{self.total} done   by node, done+running: {told}"

    def _node(self, node: Mapping[str, Any]) -> str:
        places = _bar(node["running_jobs"], node["max_jobs"], width=node["max_jobs"])
        return (
            f"{node['name']:<6} {node['status']:<8} running {places:<4} "
            f"done {self.done_by[node['id']]:>3}"
        )


class View:
    """Shows a picture after the other."""

    def __init__(self) -> None:
        self._live: Any = None
        self._next_line_at = 0.0

    def __enter__(self) -> Self:
        if sys.stdout.isatty():
            from rich.live import Live  # noqa: PLC0415 - only a terminal needs it

            self._live = Live(auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, picture: Picture) -> None:
        if self._live is not None:
            self._live.update("\n".join(picture.lines()), refresh=True)
        elif time.monotonic() >= self._next_line_at or picture.done == picture.total:
            self._next_line_at = time.monotonic() + LINE_S
            click.echo(picture.line())

    def say(self, sentence: str) -> None:
        if self._live is not None:
            self._live.console.print(f"[bold red]{sentence}[/]")
        else:
            click.echo(f"  {sentence}")


def _bar(part: int, whole: int, width: int = WIDTH) -> str:
    filled = min(width, round(width * part / whole)) if whole > 0 else 0
    return "█" * filled + "░" * (width - filled)
