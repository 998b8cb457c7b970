"""What the programs cost by themselves: memory of the agent, time of --help."""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from bench.figures import Figure
from bench.site import Site, environment, rss_mb, stop

HELPS: Final = 9
IDLE_S: Final = 5
AGENT_JOBS: Final = 200


def helps() -> list[Figure]:
    """Return the median time of --help of each command, and of an interpreter that does nothing."""
    folder = Path(sys.executable).parent
    commands = {
        "python -c pass": (sys.executable, "-c", "pass"),
        "umbra-compute --help": (folder / "umbra-compute", "--help"),
        "umbra-agent --help": (folder / "umbra-agent", "--help"),
    }
    return [
        Figure(f"{name}, median of {HELPS}", _median_ms(argv), "ms")
        for name, argv in commands.items()
    ]


def _median_ms(argv: tuple[str | Path, ...]) -> float:
    taken = []
    for _ in range(HELPS):
        began = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, timeout=20)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


async def agent(site: Site, folder: Path) -> list[Figure]:
    """Return the resident memory of an agent: idle, and after it ran jobs."""
    config = folder / "agent.toml"
    config.write_text(
        f'[controller]\nurl = "{site.url}"\n[agent]\nmax_jobs = 4\n'
        '[[handler]]\nkinds = ["echo"]\nargv = ["/bin/echo", "1"]\nresult = "stdout"\n',
        encoding="utf-8",
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "umbra_agent", "run", "--config", config),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        env=environment(UMBRA_NODE_KEY=site.node_keys[0]),
    )  # fmt: skip
    try:
        await asyncio.sleep(IDLE_S)  # imports, detection and the first reports are behind it
        idle_mb = rss_mb(process.pid)
        began = time.perf_counter()
        batch = {"jobs": [{"kind": "echo"}] * AGENT_JOBS}
        made = await site.post("/v1/jobs/batch", batch)
        async with asyncio.timeout(60):
            for job in made["jobs"]:
                ended = await site.get(f"/v1/jobs/{job['id']}?wait_s=30")
                assert ended["status"] == "complete", ended
        took_s = time.perf_counter() - began
        loaded_mb = rss_mb(process.pid)
    finally:
        await stop(process)
    return [
        Figure("agent, resident memory, idle", idle_mb, "MB"),
        Figure(f"agent, resident memory, after {AGENT_JOBS} jobs", loaded_mb, "MB"),
        Figure("agent, jobs of /bin/echo, 4 at a time", AGENT_JOBS / took_s, "jobs/s"),
    ]
