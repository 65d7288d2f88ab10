"""Write `robomimic/set.hdf5` with robomimic's own converter of D4RL's arrays, in an environment of its own.

pip install --no-deps robomimic==0.3.0
pip install h5py tqdm termcolor
python by_robomimic.py

The converter asks gym and d4rl for the arrays. Stand-ins give it these, as D4RL's packages only download theirs.
"""

import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

HERE = Path(__file__).parent / "robomimic"
ARRAYS = {
    "observations": np.array([[2 * step, 2 * step + 1] for step in range(4)] * 2 + [[0, 0]], float)
    + np.repeat([0, 10, 0], [4, 4, 1])[:, None],
    "actions": np.array([[0], [1], [2], [0]] * 2 + [[0]], float),
    "rewards": np.full(9, 0.5),
    "terminals": np.arange(9) % 4 == 3,
    "timeouts": np.zeros(9, bool),
}


def stand_in(name: str, **parts: object) -> None:
    """A module of this name with these parts."""
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(parts)


if __name__ == "__main__":
    made = SimpleNamespace(env=SimpleNamespace(get_dataset=lambda: ARRAYS), close=lambda: None)
    stand_in("gym", make=lambda name: made)
    stand_in("d4rl", set_dataset_path=lambda path: None)
    stand_in("robomimic.envs.env_gym", EnvGym=lambda name: SimpleNamespace(serialize=dict))
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["convert_d4rl", "--env", "set", "--folder", folder]
        runpy.run_module("robomimic.scripts.conversion.convert_d4rl", run_name="__main__")
        HERE.mkdir(exist_ok=True)
        shutil.copy(Path(folder) / "d4rl" / "converted" / "set.hdf5", HERE / "set.hdf5")
