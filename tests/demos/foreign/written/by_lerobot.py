"""Write `lerobot/` with LeRobot itself, in an environment of its own.

pip install lerobot
python by_lerobot.py
"""

from pathlib import Path

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

HERE = Path(__file__).parent
FEATURES = {
    "observation.state": {"dtype": "float32", "shape": (2,), "names": ["across", "height"]},
    "action": {"dtype": "float32", "shape": (1,), "names": ["push"]},
}

if __name__ == "__main__":
    dataset = LeRobotDataset.create("grace/robot", fps=10, features=FEATURES, root=HERE / "lerobot", use_videos=False)
    for number, task in enumerate(("lift the cube", "push the cube")):
        for step in range(4):
            state = np.array([2 * step, 2 * step + 1], np.float32) + 10 * number
            dataset.add_frame({"observation.state": state, "action": np.array([step], np.float32), "task": task})
        dataset.save_episode()
    dataset.finalize()
