"""`python -m grace_irl`: the command line."""

from grace_irl.cli import main

main()
