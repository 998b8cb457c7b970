"""What the programs cost when they do nothing: memory of the agent, time of --help."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.over_http import Site, rss_mb
from bench.rig import Figure

RUNS = 7


def helps() -> list[Figure]:
    """Return the median time of --help of each command, in ms."""
    return [_help(name) for name in ("umbra-compute", "umbra-agent")]


def _help(name: str) -> Figure:
    program = Path(sys.executable).parent / name
    taken = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run([program, "--help"], stdout=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - began)
    return Figure(f"{name} --help", statistics.median(taken) * 1000, "ms")


def agent(site: Site, folder: Path) -> Figure:
    """Return the resident memory of an idle agent, in MB."""
    config = folder / "agent.toml"
    config.write_text(
        f'[controller]\nurl = "{site.url}"\n[[handler]]\nkinds = ["none"]\nargv = ["/bin/true"]\n'
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("UMBRA_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "umbra_agent", "run", "--config", config],
        stderr=subprocess.DEVNULL, env={**environment, "UMBRA_NODE_KEY": site.node_keys[0]},
    )  # fmt: skip
    time.sleep(5)
    used_mb = rss_mb(process.pid)
    process.terminate()
    process.wait(20)
    return Figure("agent, resident memory, idle", used_mb, "MB")
