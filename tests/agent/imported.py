"""Run the command line and print what it imported: `python -m tests.agent.imported ARGV…`."""

import sys
from contextlib import suppress

from umbra_agent import cli

if __name__ == "__main__":
    with suppress(SystemExit):
        cli.main(sys.argv[1:])
    sys.stdout.write("\n" + " ".join(name for name in sys.modules if "." not in name) + "\n")
