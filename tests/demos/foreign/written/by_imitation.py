"""Write `imitation/` with the library imitation 1.0 itself, in an environment of its own.

pip install 'imitation>=1.0' 'datasets>=2.8' 'numpy<2.3' 'setuptools<81'
python by_imitation.py
"""

from pathlib import Path

import numpy as np
from imitation.data import serialize
from imitation.data.types import TrajectoryWithRew

HERE = Path(__file__).parent


def episode(number: int) -> TrajectoryWithRew:
    """Four states that count upward from ten times the number."""
    states = np.arange(8, dtype=np.float32).reshape(4, 2) + 10 * number
    infos = np.array([{"step": step} for step in range(3)])
    return TrajectoryWithRew(states, np.arange(3), infos, terminal=number == 1, rews=np.full(3, 0.5))


if __name__ == "__main__":
    serialize.save(HERE / "imitation", [episode(0), episode(1)])
