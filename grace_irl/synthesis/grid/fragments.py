"""Pieces of reward programs for grids: functions as text, and the tables that say what a program knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Template

from grace_irl.synthesis.grid.meaning import Arrangement, Feature, Filter, Outline
from grace_irl.synthesis.grid.progress import Shaping
from grace_irl.synthesis.grid.scene import EVENTS, SIDES
from grace_irl.text import packed, quoted

AGENT_CELL = '''
def agent_cell(state):
    """Row and column of the agent, or None where it cannot be seen."""
    rows, columns = np.nonzero(state[:, :, AGENT[0]] == AGENT[1])
    return (int(rows[0]), int(columns[0])) if len(rows) else None
'''

IS_THING = Template('''
def is_thing(code):
    """Whether a cell with this code holds a thing."""
    return code not in BACKGROUND$but_agent
''')

CODE_AT = '''
def code_at(state, cell):
    """The code of a cell, or None outside the grid."""
    if 0 <= cell[0] < state.shape[0] and 0 <= cell[1] < state.shape[1]:
        return tuple(state[cell].tolist())
    return None
'''

FACED = Template('''
def faced(state):
    """The cell ahead of the agent and its code, where it holds a thing."""
    here = agent_cell(state)
    step = AHEAD.get(int(state[here][$heading])) if here else None
    if step is not None:
        cell = (here[0] + step[0], here[1] + step[1])
        code = code_at(state, cell)
        if code is not None and is_thing(code):
            yield "faced", cell, code
''')

ENTERED = '''
def entered(first, state):
    """The agent's cell and what was in it at the start, where that was a thing."""
    here = agent_cell(state)
    if here is not None and is_thing(code_at(first, here)):
        yield "entered", here, code_at(first, here)
'''

DIFFERENCES = Template('''
def differences(before, state):
    """What has happened to things between two states: the event, the cell and the thing's code."""
    for row, column in np.argwhere((before != state).any(axis=2)).tolist():
        cell = (row, column)
        old, new = code_at(before, cell), code_at(state, cell)$hidden
$branches
''')
HIDDEN = """
        if AGENT[1] in (old[AGENT[0]], new[AGENT[0]]):
            continue  # what is under the agent cannot be seen"""
BRANCHES = {
    "taken": ("is_thing(old) and not is_thing(new)", "old"),
    "changed": ("is_thing(old) and is_thing(new)", "new"),
    "placed": ("is_thing(new) and not is_thing(old)", "new"),
}

SIDES_OF = Template('''
def sides(first, cell):
    """On which sides of the agent's first cell and heading a cell lies."""
    here = agent_cell(first)
    if here is None:
        return set()
    ahead = AHEAD.get(int(first[here][$heading]), (0, 0))
    down, across = cell[0] - here[0], cell[1] - here[1]
    forward = down * ahead[0] + across * ahead[1]
    sideways = across * ahead[0] - down * ahead[1]
    where = {"ahead": forward > 0, "behind": forward < 0, "left": sideways < 0, "right": sideways > 0}
    return {side for side, holds in where.items() if holds}
''')

AGREES = '''
def agrees(meanings, words, thing):
    """Whether a thing is what the words say, as far as they have a meaning."""
    return not any(
        word in values and feature in thing and not values[word] & thing[feature]
        for feature, values in meanings.items()
        for word in words
    )
'''

NOVEL = Template('''
def speaks_of_something_new(self, words):
    """Whether a word was never seen before, and something at the start has a feature that no word names."""
    if PLAIN.union(*NAMES.values()).issuperset(words):
        return False
    for cell in np.ndindex(self.first.shape[:2]):
        code = code_at(self.first, cell)
        if is_thing(code):
            thing = $features
            if unnamed(words, thing):
                return True
    return False
''')

UNNAMED = '''
def unnamed(words, thing):
    """Whether a thing has a feature that these words leave open and no known word names."""
    return any(
        thing[feature] - set().union(*values.values())
        for feature, values in NAMES.items()
        if feature in thing and not any(word in values for word in words)
    )
'''

PAIRED = '''
def paired(self, parts, state, event, cell, code):
    """How well what has happened fits, with the other things that are spoken of in neighbouring cells."""
    fit = self.fits(parts[0], event, cell, code)
    sides = ((1, 0), (0, 1), (-1, 0), (0, -1))
    around = [code_at(state, (cell[0] + down, cell[1] + across)) for down, across in sides]
    things = [{0: {code[0]}, 1: {code[1]}} for code in around if code is not None and is_thing(code)]
    for words in parts[1:]:
        fit = min([fit, max((self.described(words, thing) for thing in things), default=0.0)])
    return fit
'''

CUT = '''
def cut(words, separators):
    """The words between separators."""
    parts = [[]]
    for word in words:
        if word in separators:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts
'''

STAGES = Template('''
def stages(words):
    """The steps of an instruction: stages in the order to do them in, each of steps in any order."""
    for at, word in enumerate(words):
        if word in $order:
            before, after = stages(words[:at]), stages(words[at + 1 :])
            return $both
    return [$steps]
''')


WIDTH, MAX_WIDTH = 100, 120
"""Characters that a line is broken at, and of the longest that is left whole."""
KEYS: dict[Feature, str] = {"channel 0": "0", "channel 1": "1", "channel 2": "2"}
"""The spelling of a feature in the program, if that is not its name in quotes."""
SAYS: dict[Feature, str] = {
    "event": "what happens to the thing",
    "channel 0": "channel 0 of its code",
    "channel 1": "channel 1 of its code",
    "channel 2": "channel 2 of its code",
    "side": "where it lies, seen from the agent's first cell and heading",
}

PARTING: tuple[tuple[str, Arrangement, str], ...] = (
    ("THEN", "then", "words between steps: what stands before is done first"),
    ("AFTER", "after", "words between steps: what stands behind is done first"),
    ("BOTH", "both", "words between steps that may be done in any order"),
    ("BESIDE", "beside", "words between a thing and the one beside it"),
)
"""Sets of separating words, by what they do."""


def write_constants(outline: Outline, shaping: Shaping | None) -> list[str]:
    """The lines that define them."""
    agent = outline.perception.agent
    lines = []
    if agent is not None:
        lines.append(f"AGENT = ({agent.channel}, {agent.code})  # the channel and code of the one thing that moves")
        if agent.heading_channel is not None and (
            "faced" in outline.events or outline.sides or (shaping is not None and shaping.ahead)
        ):
            ahead = ", ".join(f"{code}: {offset}" for code, offset in agent.headings)
            lines.append(f"AHEAD = {{{ahead}}}  # channel {agent.heading_channel} of its cell: one step ahead")
    lines.append(f"BACKGROUND = {outline.perception.background}  # cells without a thing")
    if shaping:
        lines.append(f"NEAR = {shaping.near}  # the most that progress is worth: less than any goal")
    if outline.always:
        entries = [f"{_key(f.feature)}: {_value(f)}" for f in outline.always]
        lines += _packed("ALWAYS = {", entries, "}", "what the thing has to be, whatever the instruction says")
    if outline.phrases:
        lines += _packed("PHRASES = [", map(quoted, outline.phrases), "]", "words that are read as one")
    lines += [
        f"{name} = {{{', '.join(map(quoted, words))}}}  # {about}"
        for name, arrangement, about in PARTING
        if (words := outline.plan.of(arrangement))
    ]
    if outline.sure:
        lines += ["# What a word says about a thing: by feature, the values of which it must have one."]
        lines += _dictionary("WORDS", outline.sure)
    if outline.guessed:
        lines += ["# What a word may well say, as far as the demonstrations show."]
        lines += _dictionary("GUESSES", outline.guessed)
    if outline.novel != "ignore":
        lines += _names(outline)
    return lines


def _names(outline: Outline) -> list[str]:
    """Everything that has a name, for words that were never seen before."""
    lines = []
    if not outline.guessed or not outline.sure:
        lines.append(f"NAMES = {'WORDS' if outline.sure else 'GUESSES'}")
    elif set(outline.sure) & set(outline.guessed):
        lines.append("NAMES = {f: {**GUESSES.get(f, {}), **WORDS.get(f, {})} for f in {**GUESSES, **WORDS}}")
    else:
        lines.append("NAMES = {**GUESSES, **WORDS}")
    if not outline.plain:
        return [*lines, "PLAIN = set()  # words that say nothing about a thing"]
    return [*lines, *_packed("PLAIN = {", map(quoted, outline.plain), "}", "words that say nothing about a thing")]


def _key(feature: Feature) -> str:
    return KEYS.get(feature, f'"{feature}"')


def _value(f: Filter) -> str:
    if f.feature == "event":
        return f'"{EVENTS[f.value]}"'
    return f'"{SIDES[f.value]}"' if f.feature == "side" else str(f.value)


def _packed(head: str, entries: Iterable[str], tail: str, comment: str) -> list[str]:
    """A collection, on one line if it fits."""
    entries = list(entries)
    short = f"{head}{', '.join(entries)}{tail}  # {comment}"
    return [short] if len(short) <= MAX_WIDTH else [f"{head}  # {comment}", *packed(entries, WIDTH), tail]


def _dictionary(name: str, by_feature: Mapping[Feature, Mapping[str, tuple[Filter, ...]]]) -> list[str]:
    lines = [f"{name} = {{"]
    for feature, words in sorted(by_feature.items()):
        lines.append(f"    {_key(feature)}: {{  # {SAYS[feature]}")
        for word, filters in sorted(words.items()):
            lines.append(f"        {quoted(word)}: {{{', '.join(map(_value, filters))}}},")
        lines.append("    },")
    return [*lines, "}"]
