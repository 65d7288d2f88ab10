"""The command line as `python -m grace_irl`."""

import sys

from grace_irl.cli import main

if __name__ == "__main__":
    sys.exit(main())
