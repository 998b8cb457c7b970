"""Detect once and print it as JSON. Its own process: a driver that hangs, hangs here."""

import json
import sys

from umbra_agent.devices.memory import memory, processors


def detect() -> list[dict[str, object]]:
    """Return this machine's devices as a heartbeat reports them, each with `why`."""
    ram = memory()
    return [
        {
            "label": "cpu",
            "kind": "cpu",
            "ram_total_mb": ram.total_mb,
            "ram_free_mb": ram.free_mb,
            "compute_units": processors(),
            "healthy": True,
            "why": f"memory by {ram.why}",
        }
    ]


if __name__ == "__main__":
    json.dump(detect(), sys.stdout)
