"""`umbra-compute`, and `python -m umbra_compute`."""

import sys


def main() -> None:
    """Run the command line and exit with its status."""
    from umbra_compute.cli import run  # noqa: PLC0415 - so that a broken pipe is caught there

    sys.exit(run())


if __name__ == "__main__":
    main()
