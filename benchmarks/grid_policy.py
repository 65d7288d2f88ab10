"""The cost of training the network that reads grids: cells that share a computation, beside every cell by itself.

On states of real levels, played at random; one thread; forward and backward through the features alone, in minibatches
of 256, both ways in turn, as CPU time.

    python benchmarks/grid_policy.py
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from grace_irl.rl.collect import collect
from grace_irl.rl.networks import CODES, GridFeatures
from grace_irl.rl.observers import MINIGRID_AGENT, GridObserver

LEVELS = ("BabyAI-GoToObj-v0", "BabyAI-OpenDoorColor-v0")
"""8 x 8 and 22 x 22 cells."""
BATCH = 256


def plainly(network: GridFeatures, observations: Tensor, cells: int) -> Tensor:
    """The network's computation, cell by cell."""
    numbers = observations.long()
    codes = numbers[:, : 3 * cells].reshape(len(numbers), cells, 3).clamp(max=CODES - 1)
    looked_up = torch.nn.functional.embedding_bag(
        (codes + network._offsets).reshape(-1, 3), network._codes.weight, mode="sum"
    ).reshape(len(numbers), cells, -1)
    hidden = torch.relu(looked_up + network._places(network._seen_from(codes)))
    scale, shift = network._film(network._read(numbers[:, 3 * cells :])).chunk(2, dim=1)
    hidden = torch.relu(network._second(hidden) * (1 + scale[:, None]) + shift[:, None])
    return torch.cat((hidden.amax(dim=1), hidden.mean(dim=1)), dim=1)


def milliseconds(features: Callable[[], Tensor], network: GridFeatures) -> float:
    """CPU time of one forward and backward pass."""
    began = time.process_time()
    network.zero_grad()
    features().square().sum().backward()  # type: ignore[no-untyped-call]
    return 1000 * (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30, help="of both ways (default 30)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for level in LEVELS:
        played = [item.trajectory for item in collect(level, "random", 8, "negative", seed=0)]
        shape = played[0].states.shape[1:]
        observer = GridObserver((int(shape[0]), int(shape[1]), 3), MINIGRID_AGENT)
        seen = [observer.observe(state, each.extra_info) for each in played for state in each.states]
        rows = np.random.default_rng(0).choice(len(seen), BATCH)
        batch = torch.as_tensor(np.stack(seen)[rows]).float()
        network = GridFeatures(observer.space, observer.shape, observer.agent)
        ways = {
            "shared": lambda net=network, of=batch: net(of),
            "plain": lambda net=network, of=batch, cells=observer.cells // 3: plainly(net, of, cells),
        }
        torch.testing.assert_close(ways["shared"](), ways["plain"](), rtol=1e-4, atol=1e-5)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.turns):
            for name, way in ways.items():
                taken[name].append(milliseconds(way, network))
        shared, plain = (statistics.median(taken[name][options.turns // 5 :]) for name in ("shared", "plain"))
        print(
            f"{level}: {shape[0]} x {shape[1]} cells: {shared:.1f} ms, plain {plain:.1f} ms: {plain / shared:.2f} times"
        )


if __name__ == "__main__":
    main()
