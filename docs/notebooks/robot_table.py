# %% [markdown]
# # A robot's log as a table
#
# A robot arm lifts a cube. Its log is a pandas data frame: a row for each state, a column for each sensor. This
# notebook goes from the frame to a reward, looks at the other programs of the search, and pays new episodes.
#
# It needs the extra `pandas`, and no simulator: the script below plays the robot.

# %%
import os
import tempfile

import numpy as np
import pandas as pd

import grace_irl

os.chdir(tempfile.mkdtemp())  # the run goes into a folder of its own
random = np.random.default_rng(0)

# %% [markdown]
# ## The log
#
# In an episode the hand goes to a place, closes its fingers, and lifts until it is `height` metres higher. The cube
# comes along if the fingers close around it. `aside` moves the place away from the cube.


# %%
def episode(number: int, aside: float, height: float, label: int) -> pd.DataFrame:
    """One episode as a table."""
    cube = np.array([*random.uniform(-0.3, 0.3, 2), 0.02])
    place = cube + aside * np.array([0.6, 0.8, 0.0])
    start = random.uniform([-0.4, -0.4, 0.2], [0.4, 0.4, 0.5])
    risen = random.uniform(0.02, 0.04, 20).cumsum()
    risen = risen[: np.argmax(risen >= height) + 1]
    above = place + risen[:, None] * [0.0, 0.0, 1.0]
    hand = np.concatenate([np.linspace(start, place, 12), np.tile(place, (3, 1)), above])
    fingers = np.concatenate([np.full(12, 0.08), np.linspace(0.06, 0.03, 3), np.full(len(risen), 0.03)])
    held = (np.arange(len(hand)) >= 14) & (aside < 0.03)
    cubes = np.where(held[:, None], hand, cube)
    numbers = np.column_stack([hand, fingers, cubes]) + random.normal(0, 0.001, (len(hand), 7))
    names = ["hand_x", "hand_y", "hand_z", "fingers", "cube_x", "cube_y", "cube_z"]
    table = pd.DataFrame(numbers.round(4), columns=names)
    table.insert(0, "step", range(len(table)))
    table.insert(0, "episode", number)
    table["label"] = label
    return table


# %% [markdown]
# 20 episodes succeed. Of the 20 failures half close beside the cube, and half lift it too little. These are *near
# misses*: they say where success ends.

# %%
good = [episode(n, 0.0, 0.15, 1) for n in range(20)]
beside = [episode(n, random.uniform(0.06, 0.15), 0.15, 0) for n in range(20, 30)]
low = [episode(n, 0.0, random.uniform(0.02, 0.11), 0) for n in range(30, 40)]
log = pd.concat([*good, *beside, *low], ignore_index=True)
log.head()

# %% [markdown]
# ## A reward
#
# `fit` takes the frame as it is. The columns `episode`, `step` and `label` have names that it knows, and all others
# are numbers of the state. `label="last"` says that the last state of each success reaches the goal. The line below
# tells what each column was taken for.

# %%
run = grace_irl.fit(log, label="last", out="run", note=print)

# %% [markdown]
# In a notebook a run shows itself: the verdict, the warnings and the program. No search saw the held-out episodes.

# %%
run

# %% [markdown]
# Warnings are signs that a reward may be wrong. No warning is no proof.

# %%
for warning in run.warnings:
    print(warning.line)
print(len(run.warnings), "warnings")

# %% [markdown]
# ## What else the search found
#
# `run.candidates` has all programs. Those with the same score cannot be told apart by the training data.

# %%
found = run.candidates.sort_values(["score", "size"], ascending=[False, True])
found[["score", "size", "accuracy"]].round(4).abs().head(6)

# %% [markdown]
# `run.front` has the best program of each number of conditions, from the smallest to the largest.

# %%
run.front[["program", "size", "words", "auc", "worse", "best"]]

# %% [markdown]
# The smallest program asks for the height of the cube alone. It pays a cube that somebody else lifted. No failure in
# the log shows such a cube, so both are right about it. The search prefers the larger one, because it also rises
# while the hand approaches. The choice between them is yours: `grace-irl export` writes any program.

# %%
smallest = run.candidates.loc[run.front.program[0]]
print(*[row.strip() for row in smallest.source.splitlines() if "max(" in row], sep="\n")

# %% [markdown]
# ## New episodes
#
# `rewards` takes a frame, too. It runs the program in the sandbox and gives one array for each episode. The four
# episodes are a success, a lift beside the cube, a low lift, and one that goes on to twice the height.

# %%
reward = grace_irl.load_reward(run.reward_path)
new = pd.concat(
    [episode(0, 0.0, 0.15, 1), episode(1, 0.1, 0.15, 0), episode(2, 0.0, 0.05, 0), episode(3, 0.0, 0.3, 1)],
    ignore_index=True,
)
paid = reward.rewards(new)
pd.DataFrame({"last reward": [values[-1] for values in paid], "states paid": [(values > 0).sum() for values in paid]})

# %% [markdown]
# The rewards of the success and of the lift beside the cube, step by step:

# %%
steps = pd.DataFrame({"success": paid[0], "beside the cube": paid[1]}).round(2)
try:
    import matplotlib  # noqa: F401

    steps.plot(xlabel="step", ylabel="reward")
except ImportError:
    print(steps.iloc[::4].to_string())
