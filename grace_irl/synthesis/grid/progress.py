"""The part of a reward program that pays for progress: how near the agent is to what it has to do next."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from textwrap import indent
from typing import Literal

from grace_irl.synthesis.grid.meaning import Outline
from grace_irl.text import quoted

Form = Literal["steps", "half steps", "inverse"]

FORMS: tuple[Form, ...] = ("steps", "half steps", "inverse")
WEIGHTS = (0.4, 0.2, 0.1)
"""Of progress: all less than the 0.5 that a guess earns, the least that a program pays for a goal."""


@dataclass(frozen=True)
class Shaping:
    """The measure of nearness, and its worth.

    Attributes:
        near: the most that progress is worth.
        form: nearness n steps away from a thing, on a grid of h rows and w columns: "steps" is 1 - n / (h + w);
            "half steps" the same, counted from halfway to the cell ahead of the agent, so that a turn counts, too;
            "inverse" is 1 / (1 + n), which falls off fast.
    """

    near: float
    form: Form

    @property
    def ahead(self) -> bool:
        """Whether the agent's heading counts."""
        return self.form == "half steps"


def shapings(headed: bool) -> tuple[Shaping, ...]:
    """All of them, in the order of trying.

    Args:
        headed: whether the agent has a heading.
    """
    known = [Shaping(near, form) for near in WEIGHTS for form in FORMS]
    return tuple(one for one in known if headed or not one.ahead)


SHAPED = ("channel 0", "channel 1", "side")
"""Features that a thing has before anything happens to it; what happens may change its channel 2."""
VERBS = {
    "faced": "face",
    "taken": "take",
    "changed": "change",
    "placed": "put down",
    "entered": "enter",
}
NEARNESS: dict[Form, str] = {
    "steps": "1 - min(steps) / sum({grid}.shape[:2])",
    "half steps": "1 - min(steps) / sum({grid}.shape[:2])",
    "inverse": "1 / (1 + min(steps))",
}

THINGS = '''
def things(grid):
    """The cells that hold a thing, each with its code."""
    bare = np.any([(grid == code).all(axis=2) for code in BACKGROUND], axis=0)
    coded = [(cell, code_at(grid, cell)) for cell in map(tuple, np.argwhere(~bare).tolist())]
    return [(cell, code) for cell, code in coded if is_thing(code)]
'''

NOVEL = Template('''
def speaks_of_something_new(self, words):
    """Whether a word was never seen before, and something at the start has a feature that no word names."""
    if PLAIN.union(*NAMES.values()).issuperset(words):
        return False
    for cell, code in things(self.first):
        thing = $features
        if unnamed(words, thing):
            return True
    return False
''')
"""As in `fragments`, by the function that is there anyway."""

HALF_STEP = Template("""
ahead = AHEAD.get(int(state[here][$heading]), (0, 0))
here = (here[0] + ahead[0] / 2, here[1] + ahead[1] / 2)  # to turn towards a thing is half a step
""")
LAST_SEEN = """
seen = state.copy()
seen[here] = self.map[here]  # what is under the agent cannot be seen
if seen.tobytes() != self.map.tobytes():
    self.map, before = seen, self.things
    self.things = things(seen)
    if self.things != before:
        self.now = {}
"""
SHARE = Template("""
finished, due = 0, []
for stage, done in zip(self.stages, self.done):
    due = [step for step, how_well in zip(stage, done) if not how_well]
    finished += len(stage) - len(due)
    if due:
        break
nearest = max(($nearness for $step in due), default=0.0)
return NEAR * ((finished + nearest) / sum(map(len, self.stages)))
""")
NEAR = Template('''
def near(self, here, found):
    """How near a place is to the nearest of the things found, 0.0 to 1.0; 0.0 without any."""
    steps = [abs(here[0] - row) + abs(here[1] - column) for row, column in found]
    return $nearness if steps else 0.0
''')
NEAR_BEST = Template('''
def near(self, here, found):
    """How near a place is to the nearest of the things that fit best, 0.0 to 1.0; 0.0 without any."""
    best = max(found.values(), default=0.0)
    steps = [abs(here[0] - row) + abs(here[1] - column) for (row, column), fit in found.items() if fit == best]
    return $nearness if steps else 0.0
''')
PUT = Template("""
start = $first
now = $now
if $count_now >= $count_start:
    return 0.5 * self.near(here, now)  # all of them are still there
$carried
""")
CARRIED = "return 0.5  # one is carried"
CARRIED_TO = """
others = (self.near(here, self.found(words, self.things, self.now)) for words in parts[1:])
return 0.5 + 0.5 * min(others, default=0.0)  # one is carried
"""
FOUND = Template('''
def found(self, ${words}seen, known):
    """Those of the things seen that fit, as far as can be seen before anything happens$graded."""
$body
''')


class ProgressParts:
    """The functions, fields and methods for progress."""

    def __init__(self, outline: Outline, shaping: Shaping) -> None:
        self.outline = outline
        self.shaping = shaping
        events = set(outline.events)
        self.placed, self.entered = "placed" in events, "entered" in events
        self.moving = events != {"entered"}
        """Whether the present places of things matter."""
        self.graded = bool(outline.guessed) or outline.novel == "guess"
        """Whether things can fit by half."""

    @property
    def about(self) -> str:
        """The end of the sentence that begins with what the program pays 1.0 for."""
        nearer = "the nearer the agent is to it"
        if self.outline.plan.steps:
            nearer = "the more steps are done and the nearer the agent is to the next"
        return f"elsewhere up to {self.shaping.near}, more {nearer}".replace("more the", "the")

    @property
    def fields(self) -> list[str]:
        """Lines for `__init__`."""
        lines = []
        if self.moving:
            lines.append("self.map = None  # every cell as last seen, without the agent")
            lines.append("self.things = []  # the things in them")
            lines.append("self.now = {}  # those that fit, by what is said of them")
        if self.placed or self.entered:
            lines.append("self.first_things = []  # the things in the first state")
            lines.append("self.start = {}  # those of them that fit")
        return lines

    @property
    def begin(self) -> list[str]:
        """Lines for the first state."""
        lines = []
        if self.moving:
            lines.append("self.map, self.things = state, things(state)")
        if self.placed or self.entered:
            lines.append(f"self.first_things = {'self.things' if self.moving else 'things(state)'}")
        return lines

    def methods(self) -> list[str]:
        """`progress` and what it needs."""
        nearness = NEARNESS[self.shaping.form].format(grid="self.map" if self.moving else "self.first")
        near = (NEAR_BEST if self.graded else NEAR).substitute(nearness=nearness)
        return [self._progress(), self._nearness(), near, *self._found()]

    def _progress(self) -> str:
        event = VERBS[self.outline.events[0]] if len(self.outline.events) == 1 else "do something with"
        about = f"How near the agent is to what it has to {event}: 0.0 to NEAR."
        if self.outline.plan.steps:
            about = "The share of the steps that is done, and how near the agent is to the next: 0.0 to NEAR."
        lines = ["here = agent_cell(state)", "if here is None:", "    return 0.0"]
        if self.moving:
            lines.append(LAST_SEEN.strip("\n"))
        if self.shaping.ahead:
            agent = self.outline.perception.agent
            heading = agent.heading_channel if agent is not None else None
            lines.append(HALF_STEP.substitute(heading=heading).strip("\n"))
        if self.outline.plan.steps:
            step = "step" if self.outline.described else "_"
            lines.append(SHARE.substitute(nearness=self._call(step), step=step).strip("\n"))
        else:
            lines.append(f"return NEAR * {self._call('self.parts' if self.outline.plan.beside else 'self.words')}")
        return _method("progress(self, state)", about, "\n".join(lines))

    def _call(self, said: str) -> str:
        return f"self.nearness({said}, here)" if self.outline.described else "self.nearness(here)"

    def _nearness(self) -> str:
        outline = self.outline
        described = outline.described
        said = ("parts, " if outline.plan.beside else "words, ") if described else ""
        thing = "parts[0]" if outline.plan.beside else "words"
        lines = []
        if len(outline.events) > 1 and (self.placed or self.entered):
            tables = [name for name, of in (("WORDS", outline.sure), ("GUESSES", outline.guessed)) if "event" in of]
            each = ", ".join(f'{name}["event"]' for name in tables)
            comma = "," if len(tables) == 1 else ""
            lines.append(f"tables = ({each}{comma})")
            lines.append(
                f"verbs = next((table[word] for table in tables for word in {thing} if word in table), "
                '{ALWAYS["event"]})'
            )
        first, now = (self._look(thing, *where) for where in (("first_things", "start"), ("things", "now")))
        if self.placed:
            count = "sum({}.values())" if self.graded else "len({})"
            put = PUT.substitute(
                first=first,
                now=now,
                count_now=count.format("now"),
                count_start=count.format("start"),
                carried=(CARRIED_TO if outline.plan.beside else CARRIED).strip("\n"),
            ).strip("\n")
            if outline.events == ("placed",):
                return self._nearness_method(said, put)
            lines += ['if "placed" in verbs:', indent(put, "    ")]
        if outline.events == ("entered",):
            lines.append(f"return self.near(here, {first})")
        else:
            if self.entered:
                lines += ['if "entered" in verbs:', f"    return self.near(here, {first})"]
            lines.append(f"return self.near(here, {now})")
        return self._nearness_method(said, "\n".join(lines))

    def _nearness_method(self, said: str, body: str) -> str:
        return _method(f"nearness(self, {said}here)", "How near a place is to what has to be done, 0.0 to 1.0.", body)

    def _look(self, thing: str, among: str, known: str) -> str:
        words = f"{thing}, " if self.outline.described else ""
        return f"self.found({words}self.{among}, self.{known})"

    def _found(self) -> list[str]:
        outline = self.outline
        # The side of a thing that is put down is where it ends; what always holds does so of what is put there alone.
        side = outline.sides and outline.events != ("placed",)
        always = not outline.plan.beside and any(f.feature in SHAPED for f in outline.always)
        features = "{0: {code[0]}, 1: {code[1]}" + (', "side": sides(self.first, cell)}' if side else "}")
        words = "words, " if outline.described else ""
        fits = f"self.suits({words}cell, code)" if side or always else f"self.described({words}{features})"
        lines = [f"key = {'tuple(words)' if outline.described else quoted('thing')}", "if key not in known:"]
        if not outline.described and not always:
            lines.append("    known[key] = [cell for cell, _ in seen]")
        elif self.graded:
            lines.append(f"    fits = {{cell: {fits} for cell, code in seen}}")
            lines.append("    known[key] = {cell: fit for cell, fit in fits.items() if fit}")
        else:
            lines.append(f"    known[key] = [cell for cell, code in seen if {fits}]")
        lines.append("return known[key]")
        graded = ", and how well" if self.graded else ""
        found = FOUND.substitute(words=words, graded=graded, body=indent("\n".join(lines), "    "))
        return [found, self._suits(words, features, always)] if side or always else [found]

    def _suits(self, words: str, features: str, always: bool) -> str:
        """The method for what needs more than a line."""
        lines = [f"thing = {features}"]
        if always:
            some = "any(feature in thing and value not in thing[feature] for feature, value in ALWAYS.items())"
            if not words:
                lines.append(f"return not {some}")
            else:
                lines += [f"if {some}:", "    return 0.0"]
        if words:
            lines.append("return self.described(words, thing)")
        about = "How well a thing fits before anything happens, 0.0 to 1.0."
        return _method(f"suits(self, {words}cell, code)", about, "\n".join(lines))


def _method(head: str, about: str, body: str) -> str:
    return f'\ndef {head}:\n    """{about}"""\n{indent(body, "    ")}\n'
