"""`make bench`: measure, print the tables, and write bench/RESULTS.md. See bench/README.md."""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench import figures, flat, footprint, inprocess, limits, over_http, rig
from bench.figures import Figure, Rate
from bench.limits import Limit, Load
from bench.site import rss_mb, site
from umbra_compute import log

RESULTS: Final = Path(__file__).parent / "RESULTS.md"
FLAT: Final = Path(__file__).parent / "FLAT.md"
ROUNDS: Final = 3
LOAD_S: Final = 3.0
MOST_S: Final = 330.0  # it takes some 250 s; under 6 minutes also when something hangs


def main() -> None:
    asked = _arguments()
    log.configure("json", stream=open(os.devnull, "w"))  # noqa: SIM115 - figures only
    given = rig.embedded_server() if asked.dsn is None else nullcontext(asked.dsn)
    with given as dsn:
        measured = asyncio.run(_measured(dsn, asked.what))
    if measured is None:
        sys.exit(f"Not done after {MOST_S:.0f} s: something hangs, or the machine is too busy.")
    text, target = measured
    print(text)
    target.write_text(text, encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=["load", "flat"], default="load",
        help="load: rates, latency, memory (default); flat: claims beside a million rows",
    )  # fmt: skip
    parser.add_argument(
        "--dsn", help="a PostgreSQL where databases may be made; else one is started"
    )
    return parser.parse_args()


async def _measured(dsn: str, what: str) -> tuple[str, Path] | None:
    """Return what was found and where it belongs; None if that took longer than MOST_S."""
    server = rig.Server(dsn)
    try:
        async with asyncio.timeout(MOST_S) as deadline:
            told = figures.machine(await server.version())
            if what == "flat":
                return _text("Flat", told, figures.backlogs_table(await flat.measure(server))), FLAT
            return _text("Measured", told, await _loads(server)), RESULTS
    except TimeoutError:
        if not deadline.expired():
            raise
        return None
    finally:
        await server.close()


def _text(title: str, told: str, tables: list[str]) -> str:
    how = "How to read this: bench/README.md. Compare ratios, not figures of different runs."
    return "\n".join([f"# {title}", "", told, "", how, "", *tables])


async def _loads(server: rig.Server) -> list[str]:
    alone = footprint.helps()
    raw = await limits.prepare(server)
    async with inprocess.world(server) as world, site(server) as running:
        idle_mb = rss_mb(running.pid)
        inside = [_run(load, world.run) for load in inprocess.LOADS]
        outside = [_run(load, partial(over_http.run, running)) for load in over_http.LOADS]
        for _ in range(ROUNDS):
            for rate, limit, run in inside + outside:
                rate.limits.append(await limits.measure(raw, limit))
                rate.rates.append(await run())
        loaded_mb = rss_mb(running.pid)
        starts = await over_http.starts(running)
        with tempfile.TemporaryDirectory() as folder:
            agent = await footprint.agent(running, Path(folder))
    memory = [
        Figure("controller, resident memory, idle", idle_mb, "MB"),
        Figure("controller, resident memory, after the loads", loaded_mb, "MB"),
    ]
    return [
        *("## In process: operations on 16 connections", ""),
        *figures.rates_table([rate for rate, _, _ in inside]),
        *("## Over HTTP: a controller's process", ""),
        *figures.rates_table([rate for rate, _, _ in outside]),
        *("## By themselves", ""),
        *figures.figures_table([*starts, *memory, *agent, *alone]),
    ]


def _run(
    load: Load, how: Callable[[str, int, int, float], Coroutine[Any, Any, float]]
) -> tuple[Rate, Limit, Callable[[], Coroutine[Any, Any, float]]]:
    """Return where the load's rates are kept, its raw limit, and what measures it once."""
    return (
        Rate(load.what, load.limit.name),
        load.limit,
        lambda: how(load.how, load.size, load.workers, LOAD_S),
    )


if __name__ == "__main__":
    main()
