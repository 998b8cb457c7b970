"""`python -m umbra_agent`."""

import sys

from umbra_agent.cli import main

if __name__ == "__main__":
    sys.exit(main())
