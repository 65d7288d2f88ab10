"""The start script of a zygote, the process that forks a child for each program.

The command is `python boot.py PACKAGE_FOLDER DESCRIPTOR OPTIONS`. The arguments are the folder of `grace_irl`, the file
descriptor of a socket to the host (the process that uses the sandbox), and a JSON object with the host's import
folders.

The script registers `grace_irl` and some of its packages as empty modules, so their `__init__` files do not run. These
files would import many more modules. Every child would inherit these modules in its memory, and a program could search
them there.
"""

import json
import os
import sys
import types


def main() -> None:
    """Register the packages, then answer the host's requests until the host closes the socket."""
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
