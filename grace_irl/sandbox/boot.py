"""The script a zygote starts from: `python boot.py PACKAGE_FOLDER DESCRIPTOR OPTIONS`.

The packages are entered as bare names, so that what their `__init__` files import never lands in a zygote:
every page of it would be copied, and could be looked through, by every child.
"""

import json
import os
import sys
import types


def main() -> None:
    """Make the packages known and serve."""
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
