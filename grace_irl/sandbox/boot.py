"""The start script of a zygote: `python boot.py PACKAGE_FOLDER DESCRIPTOR OPTIONS`.

A zygote is the process that forks a child for each program. This script registers the packages as empty modules, so
that a zygote never runs their `__init__` files. Those import more modules, and every child would get a copy of their
memory, which a program could search.
"""

import json
import os
import sys
import types


def main() -> None:
    """Register the packages, then answer the host's requests until it hangs up."""
    folder, descriptor, text = sys.argv[1:4]
    options = json.loads(text)
    sys.path[:] = [*sys.path, *(entry for entry in options["path"] if entry not in sys.path)]
    for name in ("grace_irl", "grace_irl.sandbox", "grace_irl.programs", "grace_irl.demos"):
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(folder, *name.split(".")[1:])]
        sys.modules[name] = package
    from grace_irl.sandbox.zygote import serve

    serve(int(descriptor))


if __name__ == "__main__":
    main()
