"""`python -m grace_irl`: the command line."""

import sys

from grace_irl.cli import main

if __name__ == "__main__":
    sys.exit(main())
