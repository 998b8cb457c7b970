"""The live picture: bars on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import click

LINE_S: Final = 2.0
WIDTH: Final = 40

Shown = Mapping[str, Any]


class View:
    """Shows how far the work is, and what each machine does."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._live: Any = None
        self._next_line_at = 0.0

    def __enter__(self) -> Self:
        if sys.stdout.isatty():
            from rich.live import Live  # noqa: PLC0415 - only a terminal needs it

            self._live = Live(refresh_per_second=8)
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

    def show(self, done: int, queue: Shown, nodes: Sequence[Shown]) -> None:
        if self._live is not None:
            self._live.update(self._picture(done, queue, nodes))
        elif time.monotonic() >= self._next_line_at or done == self._total:
            self._next_line_at = time.monotonic() + LINE_S
            machines = ", ".join(f"{n['name']} {n['running_jobs']}" for n in nodes)
            click.echo(
                f"  {done:>3}/{self._total} done, {queue['queued']} waiting, running: {machines}"
            )

    def say(self, sentence: str) -> None:
        if self._live is not None:
            self._live.console.print(sentence, style="bold red")
        else:
            click.echo(f"  {sentence}")

    def _picture(self, done: int, queue: Shown, nodes: Sequence[Shown]) -> str:
        lines = [f"{_bar(done, self._total)} {done}/{self._total} done"]
        lines.append(f"waiting {queue['queued']}, coming back {queue['scheduled']}")
        for node in nodes:
            used = _bar(node["running_jobs"], node["max_jobs"], width=node["max_jobs"] * 4)
            lines.append(f"{node['name']:<6} {used} {node['status']}")
        return "\n".join(lines)


def _bar(part: int, whole: int, width: int = WIDTH) -> str:
    filled = 0 if whole == 0 else round(width * part / whole)
    return "█" * filled + "░" * (width - filled)
