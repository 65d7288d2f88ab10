"""Entry point of `python -m grace_irl`, which runs the command line."""

import sys

from grace_irl.cli import main

if __name__ == "__main__":
    sys.exit(main())
