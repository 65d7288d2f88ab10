"""Write `rlds/` with TensorFlow Datasets itself, in an environment of its own.

pip install tensorflow-cpu tensorflow-datasets
python by_tfds.py
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

HERE = Path(__file__).parent
TASKS = ("lift the cube", "push the cube")


class Arm(tfds.core.GeneratorBasedBuilder):
    """An episode of four steps in each of two splits, in the format RLDS."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "first"}  # noqa: RUF012

    def _info(self) -> tfds.core.DatasetInfo:
        observation = {
            "image": tfds.features.Image(shape=(8, 8, 3), encoding_format="png", doc="Camera."),
            "joints": tfds.features.Tensor(shape=(2,), dtype=np.float32, doc="Angles."),
            "goal": {"place": tfds.features.Tensor(shape=(2, 1), dtype=np.float64)},
            "open": tfds.features.Scalar(dtype=np.bool_),
            "mode": tfds.features.Text(),
            "grip": tfds.features.ClassLabel(names=["shut", "open"]),
        }
        steps = {
            "observation": observation,
            "action": {
                "push": tfds.features.Tensor(shape=(1,), dtype=np.float32, doc="Force."),
                "turn": tfds.features.Scalar(dtype=np.int32),
            },
            "reward": tfds.features.Scalar(dtype=np.float32),
            "discount": tfds.features.Scalar(dtype=np.float32),
            "is_first": tf.bool,
            "is_last": tf.bool,
            "is_terminal": tf.bool,
            "language_instruction": tfds.features.Text(doc="Task."),
        }
        features = {"steps": tfds.features.Dataset(steps), "episode_metadata": {"file_path": tfds.features.Text()}}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager: Any) -> dict[str, Iterator[tuple[str, dict[str, Any]]]]:
        return {"train": self._generate_examples(0), "val": self._generate_examples(1)}

    def _generate_examples(self, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
        for task in TASKS[number : number + 1]:
            steps = [
                {
                    "observation": {
                        "image": np.full((8, 8, 3), step, np.uint8),
                        "joints": np.array([2 * step, 2 * step + 1], np.float32) + 10 * number,
                        "goal": {"place": np.array([[number], [0.5]])},
                        "open": step == 3,
                        "mode": ("idle", "moving")[step % 2],
                        "grip": step % 2,
                    },
                    "action": {"push": np.array([step], np.float32), "turn": -step},
                    "reward": step / 2,
                    "discount": 1.0,
                    "is_first": step == 0,
                    "is_last": step == 3,
                    "is_terminal": step == 3 and number == 0,
                    "language_instruction": task,
                }
                for step in range(4)
            ]
            yield str(number), {"steps": steps, "episode_metadata": {"file_path": f"{number}.h5"}}


if __name__ == "__main__":
    shutil.rmtree(HERE / "rlds", ignore_errors=True)
    Arm(data_dir=HERE / "made").download_and_prepare()
    shutil.move(HERE / "made" / "arm" / "1.0.0", HERE / "rlds")
    shutil.rmtree(HERE / "made")
