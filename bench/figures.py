"""What a figure is, and how figures are told."""

import os
import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs

GIB = 1024**3


@attrs.frozen
class Figure:
    """One measured value that stands for itself."""

    what: str
    value: float
    unit: str


@attrs.define
class Rate:
    """Jobs a second of a load, each round beside the raw limit measured just before it."""

    what: str
    limit_name: str
    rates: list[float] = attrs.Factory(list)
    limits: list[float] = attrs.Factory(list)

    @property
    def ratios(self) -> list[float]:
        return [rate / limit for rate, limit in zip(self.rates, self.limits, strict=True)]


@attrs.frozen
class Backlog:
    """A claim beside a backlog, against one at the same moment without it."""

    what: str
    rows: int  # counted in the table, not hoped for
    alone_ms: float
    ratio: float
    alone_100_ms: float
    ratio_100: float


def rates_table(rates: Sequence[Rate]) -> list[str]:
    """Return the medians over the rounds, and how far the ratios lie apart."""
    rows = [
        "| load | jobs/s | raw limit | jobs/s | ratio | lowest to highest |",
        "|---|---|---|---|---|---|",
    ]
    for one in rates:
        ratio = statistics.median(one.ratios)
        rows.append(
            f"| {one.what} | {_told(statistics.median(one.rates))} | {one.limit_name} "
            f"| {_told(statistics.median(one.limits))} | {ratio:.2f} "
            f"| {min(one.ratios):.2f} to {max(one.ratios):.2f} |"
        )
    return [*rows, ""]


def figures_table(figures: Sequence[Figure]) -> list[str]:
    rows = ["| what | figure |", "|---|---|"]
    rows += [f"| {one.what} | {_told(one.value)} {one.unit} |" for one in figures]
    return [*rows, ""]


def backlogs_table(backlogs: Sequence[Backlog]) -> list[str]:
    rows = [
        "| beside 4,000 waiting jobs | rows in the table | one alone, ms | ratio "
        "| 100 at a time alone, ms | ratio |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {one.what} | {one.rows:,} | {one.alone_ms:.2f} | {one.ratio:.2f} "
        f"| {one.alone_100_ms:.1f} | {one.ratio_100:.2f} |"
        for one in backlogs
    ]
    return [*rows, ""]


def machine(postgresql: str) -> str:
    """Name the machine, the versions and the day."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (
        f"{datetime.now(UTC).date()}: {os.cpu_count()} CPUs ({_processor()}), "
        f"{memory / GIB:.0f} GiB, {platform.system()} {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}, PostgreSQL {postgresql}; server, controller and "
        f"load on the same CPUs. Load average at the start {os.getloadavg()[0]:.1f}."
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _told(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
