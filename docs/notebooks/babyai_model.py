# %% [markdown]
# # BabyAI with a language model
#
# A language model reads a few trajectories and writes a reward. Here its answer comes from a recording, so the
# notebook needs no server. The data are episodes of BabyAI's GoToLocalS8N7: a room with eight objects, and an
# instruction such as "go to the red ball".
#
# It needs the extra `rl`, for BabyAI. Which model wrote the answer is unknown: nobody wrote down its name when it was
# recorded (`tests/recordings/README.md`).

# %%
import json
import os
import tempfile
from pathlib import Path

import pandas as pd

import grace_irl
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.rl.collect import collect

PROJECT = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "tests" / "recordings").is_dir())
RECORDING = PROJECT / "tests" / "recordings" / "large_model" / "base-GoToLocalS8N7-plain.jsonl"
os.chdir(tempfile.mkdtemp())  # the run goes into a folder of its own

# %% [markdown]
# ## Demonstrations
#
# BabyAI's bot plays eight successes, and a random policy eight failures. The seeds are those of the recording: a
# replay is refused on other data.

# %%
LEVEL = "BabyAI-GoToLocalS8N7-v0"
experts = collect(LEVEL, "bot", 8, "expert", seed=1_000_000)
negatives = collect(LEVEL, "random", 8, "negative", seed=1_250_000)
demos = Demonstrations(experts.metadata, (*experts, *negatives))
for expert in experts:
    print(f"{expert.trajectory.extra_info}: {len(expert.trajectory.states)} states")

# %% [markdown]
# A state is a grid of integers: object, colour and state of each cell. Here are the objects of a first state, walls
# left out.

# %%
first = experts.items[0].trajectory.states[0]
print("\n".join(" ".join(f"{code:2}" for code in row) for row in first[1:-1, 1:-1, 0].T))

# %% [markdown]
# ## The prompt
#
# A prompt holds the data as numbers. It names no environment and no code of the grid, so the model has to find out
# what a 10 is.

# %%
answers = [json.loads(line) for line in RECORDING.read_text().splitlines()[1:]]
prompt = answers[0]["prompt"]
print(len(answers), "answer;", len(prompt), "characters of prompt. It begins:\n")
print(prompt[:900])

# %% [markdown]
# What the model says before its program:

# %%
print(answers[0]["reasoning"])

# %% [markdown]
# ## The run
#
# `replay` repeats the search with the recorded answers. With a server, the same line asks a model instead, and
# `--estimate` on the command line tells beforehand what that may cost (docs/models.md):
#
# ```python
# run = grace_irl.fit(demos, llm_url="http://127.0.0.1:8000", out="run")
# ```

# %%
run = grace_irl.fit(demos, replay=RECORDING, out="run")
reward = grace_irl.load_reward(run.reward_path)
reward

# %% [markdown]
# ## How good it is
#
# Nothing was held out, because the recording has eight episodes of each kind. New episodes are the better test
# anyway: forty of the bot, and forty random ones.

# %%
fresh_experts = collect(LEVEL, "bot", 40, "expert", seed=3_000_000)
fresh_negatives = collect(LEVEL, "random", 40, "negative", seed=3_250_000)
fresh = Demonstrations(fresh_experts.metadata, (*fresh_experts, *fresh_negatives))
score = grace_irl.score(run.reward_path, fresh)
pd.Series({"accuracy": score.metrics.accuracy, "auc": score.metrics.auc, "separated": score.metrics.separated})

# %% [markdown]
# The warnings of the run say what eight episodes leave open.

# %%
for warning in run.warnings:
    print(warning.line)

# %% [markdown]
# ## Another instruction
#
# The same episode under other words: does the reward read them? The bot went to one object, so all other instructions
# should go unpaid.

# %%
walk = fresh_experts.items[0].trajectory
program = grace_irl.load_reward(run.reward_path, trust=True)  # in this process, now that it was read
rows = []
for text in [walk.extra_info, *sorted({each.trajectory.extra_info for each in fresh_experts} - {walk.extra_info})[:5]]:
    episode = program(text)
    rows.append({"instruction": text, "last reward": [episode.reward_fn(state) for state in walk.states][-1]})
pd.DataFrame(rows)
