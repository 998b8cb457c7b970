"""An agent whose devices are detected by a script.

`python -m tests.agent.detecting_by CONFIGURATION SCRIPT`
"""

import os
import sys
from pathlib import Path

from umbra_agent import config, key, runtime

if __name__ == "__main__":
    settings = config.load(Path(sys.argv[1]), os.environ)
    sys.exit(
        runtime.run(
            settings,
            key.take(os.environ, None),
            power_cut_on_claim=False,
            detector_argv=("/bin/sh", "-c", sys.argv[2], "sh"),
        )
    )
