# %% [markdown]
# # Android screens
#
# States may be screens: the XML that `uiautomator dump` writes. Here a script writes the screens of a small alarm
# clock, and the search finds out when an instruction is fulfilled. Recorded episodes of a real device have the same
# form (docs/demonstrations.md).
#
# This needs no device and no extra.

# %%
import json
import os
import random
import tempfile
from pathlib import Path

import grace_irl
import grace_irl.demos

folder = Path(tempfile.mkdtemp()) / "clock"  # screens and runs go into a folder of their own
folder.mkdir()
os.chdir(folder)
draw = random.Random(0)
TIMES = ["6:30", "7:15", "8:25", "9:00", "10:45"]

# %% [markdown]
# ## Screens
#
# The app has a list of alarms. Each is a card with a time and a switch. `uiautomator` writes nested nodes with their
# attributes.


# %%
def node(kind: str, inside: str = "", **attributes: str) -> str:
    """A node of a screen."""
    said = {"class": f"android.widget.{kind}", "package": "org.example.clock", **attributes}
    text = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in said.items())
    return f"<node {text}>{inside}</node>"


def screen(alarms: dict[str, bool]) -> str:
    """The list of alarms: which times there are, and which of them are on."""
    cards = ""
    for place, (time, on) in enumerate(alarms.items()):
        top = 200 + 200 * place
        label = node("TextView", text=time, resource_id="clock:id/time", bounds=f"[40,{top}][400,{top + 150}]")
        switch = node(
            "Switch",
            resource_id="clock:id/onoff",
            checkable="true",
            checked=str(on).lower(),
            clickable="true",
            bounds=f"[800,{top}][1000,{top + 150}]",
        )
        cards += node("LinearLayout", label + switch, bounds=f"[0,{top}][1080,{top + 180}]")
    title = node("TextView", text="Alarms", bounds="[40,40][1000,160]")
    return f'<hierarchy rotation="0">{node("FrameLayout", title + cards, bounds="[0,0][1080,1920]")}</hierarchy>'


# %% [markdown]
# ## Episodes
#
# An episode is a folder: one dump for each step, and a `task.json` with the instruction and whether the episode
# succeeded. In a success the alarm of the instruction is switched on last. In a failure it is another one.


# %%
def write(name: str, success: bool) -> None:
    """Write one episode."""
    times = draw.sample(TIMES, 4)
    asked, other, third, _ = times
    alarms = {time: time == third for time in sorted(times, key=TIMES.index)}
    shown = [dict(alarms)]
    for time in (third, asked if success else other):
        alarms[time] = not alarms[time]
        shown.append(dict(alarms))
    episode = Path("screens") / name
    episode.mkdir(parents=True)
    task = {"task": f"Turn on the alarm at {asked}.", "success": success}
    (episode / "task.json").write_text(json.dumps(task))
    for number, each in enumerate(shown, 1):
        (episode / f"step_{number}.xml").write_text(screen(each))


for number in range(16):
    write(f"success-{number:02}", success=True)
    write(f"failure-{number:02}", success=False)

# %% [markdown]
# The reader takes the role of an episode from its success. This is what one of them holds:

# %%
demos = grace_irl.demos.load(["screens"])
shown = next(each for each in demos if each.role == "expert").trajectory
print(len(list(demos)), "episodes;", shown.extra_info)
print(shown.states[0].decode()[:600], "…")

# %% [markdown]
# `Screen` parses a state safely, also one that somebody else wrote:

# %%
from grace_irl.states.ui.screen import Screen  # noqa: E402

last = Screen.parse(shown.states[-1])
[(each.name, each.checked) for each in last.visible if each.text or each.checkable]

# %% [markdown]
# ## A reward
#
# For screens the label rule is `last`: the last state of a success reaches the goal.

# %%
run = grace_irl.fit("screens", out="run", note=print)

# %% [markdown]
# The program asks for one card that holds both, the time of the instruction and a switch that is on.

# %%
reward = grace_irl.load_reward(run.reward_path)
reward

# %% [markdown]
# ## How good it is

# %%
for name, side in (("training", run.best.train), ("held out", run.best.held_out)):
    print(f"{name}: accuracy {side.accuracy:.4f}, separated: {side.separated}")
for warning in run.warnings:
    print(warning.line)

# %% [markdown]
# ## A new screen
#
# One object of the program serves one episode. The first screen has the right alarm switched off, the second has it
# on, and a time that no episode had.

# %%
program = grace_irl.load_reward(run.reward_path, trust=True)  # in this process, now that it was read
judge = program("Turn on the alarm at 11:20.")
[judge.reward_fn(screen({"6:30": True, "11:20": on})) for on in (False, True)]
