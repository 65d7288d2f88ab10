"""The command line, from a checkout: `python cli.py fit --demos …` is `grace-irl fit --demos …`."""

import sys

from grace_irl.cli import main

if __name__ == "__main__":
    sys.exit(main())
