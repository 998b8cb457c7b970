"""`make bench`: measure, print a table, and write bench/RESULTS.md. `flat` adds the backlogs."""

import asyncio
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from bench import flat, footprint, inprocess, over_http, rig
from bench.rig import Figure
from umbra_compute import log

RESULTS = Path(__file__).parent / "RESULTS.md"


def main() -> None:
    log.configure("json", stream=open(os.devnull, "w"))  # noqa: SIM115 - figures only
    lines = [
        "# Measured",
        "",
        "One run, all figures in it; compare ratios, not single figures.",
        "",
    ]
    with rig.server() as server:
        lines += [asyncio.run(_machine(server)), ""]
        limits = asyncio.run(_limits(server))
        lines += _table([Figure(f"raw: {name}", rate, "/s") for name, rate in limits.items()])
        figures = footprint.helps()
        figures += asyncio.run(inprocess.measure(server, limits))
        figures += asyncio.run(_http(server, limits))
        lines += _table(figures)
        if "flat" in sys.argv[1:]:
            lines += _backlogs(asyncio.run(flat.measure(server)))
    text = "\n".join(lines) + "\n"
    print(text)
    RESULTS.write_text(text, encoding="utf-8")


async def _http(server: str, limits: dict[str, float]) -> list[Figure]:
    figures = await over_http.measure(server, limits)
    conn = await asyncpg.connect(server)
    await conn.execute("DROP DATABASE site")
    await conn.close()
    async with over_http.site(server) as running:
        with tempfile.TemporaryDirectory() as folder:
            figures.append(await asyncio.to_thread(footprint.agent, running, Path(folder)))
    return figures


async def _limits(server: str) -> dict[str, float]:
    """Return what the least job table reaches through pgbench, in jobs a second."""
    dsn = await rig.database(server, "limits", migrated=False)
    conn = await asyncpg.connect(dsn)
    await conn.execute((rig.SQL / "schema.sql").read_text(), timeout=300)
    await conn.execute("VACUUM ANALYZE least")
    await conn.close()
    return {
        "insert 16": rig.pgbench(dsn, "insert", 16),
        "claim + complete 8": rig.pgbench(dsn, "claim_complete", 8),
        "claim + complete 32": rig.pgbench(dsn, "claim_complete", 32),
        "claim + complete of 100, 4": 100 * rig.pgbench(dsn, "claim_complete_100", 4),
    }


async def _machine(server: str) -> str:
    conn = await asyncpg.connect(server)
    version = await conn.fetchval("SHOW server_version")
    await conn.close()
    cpu = _processor()
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    today = datetime.now(UTC).date()
    return (
        f"{today}: {os.cpu_count()} CPUs ({cpu}), {memory_gb:.0f} GiB, {platform.system()} "
        f"{platform.release().split('-')[0]}, Python {platform.python_version()}, PostgreSQL "
        f"{version} (durable commits), server, controller and load on the same CPUs."
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _table(figures: list[Figure]) -> list[str]:
    rows = ["| what | figure | beside the raw limit |", "|---|---|---|"]
    for one in figures:
        value = f"{one.value:,.0f}" if one.value >= 100 else f"{one.value:.1f}"
        beside = ""
        if one.limit is not None:
            beside = f"{one.value / one.limit:.2f} of {one.limit_name}"
        rows.append(f"| {one.what} | {value} {one.unit} | {beside} |")
    return [*rows, ""]


def _backlogs(found: list[tuple[str, float, float]]) -> list[str]:
    rows = ["| one claim beside | ms | ratio to 4,000 waiting alone |", "|---|---|---|"]
    rows += [f"| {name} | {ms:.2f} | {ratio:.2f} |" for name, ms, ratio in found]
    return [*rows, ""]


if __name__ == "__main__":
    main()
