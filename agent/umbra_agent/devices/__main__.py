"""Look once and print it as JSON. Its own process: what hangs, a driver or a disk, hangs here.

`python -m umbra_agent.devices WORK_DIR`. It imports little, since it runs with every heartbeat.
"""

import json
import sys
from pathlib import Path
from typing import Any

from umbra_agent.devices import disk
from umbra_agent.devices.memory import memory, processors


def look(work_dir: Path) -> dict[str, Any]:
    """Return the devices as a heartbeat reports them, each with `why`, and the state of the disk.

    `doubts` are what could not be read and was left out of account.
    """
    ram = memory()
    cpu = {
        "label": "cpu",
        "kind": "cpu",
        "ram_total_mb": ram.total_mb,
        "ram_free_mb": ram.free_mb,
        "compute_units": processors(),
        "healthy": True,
        "why": f"memory by {ram.why}",
    }
    return {
        "devices": [cpu],
        "disk_free_mb": disk.free_mb(work_dir),
        "flaw": disk.flaw(work_dir),
        "doubts": list(ram.doubts),
    }


if __name__ == "__main__":
    json.dump(look(Path(sys.argv[1])), sys.stdout)
