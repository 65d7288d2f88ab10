"""Writes a reading of the demonstrations as a reward program that a person can read.

Only what the reading needs is written: a program that looks at no words has no dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, indent

from grace_irl.propose.synthesis.grid.meaning import Feature, Filter, Hypothesis
from grace_irl.propose.synthesis.grid.perception import Perception
from grace_irl.propose.synthesis.grid.scene import EVENTS, SIDES

KEYS: dict[Feature, str] = {
    "event": '"event"',
    "channel 0": "0",
    "channel 1": "1",
    "channel 2": "2",
    "side": '"side"',
    "count": '"count"',
}
SAYS: dict[Feature, str] = {
    "event": "what happens to the thing",
    "channel 0": "channel 0 of its code",
    "channel 1": "channel 1 of its code",
    "channel 2": "channel 2 of its code",
    "side": "where it lies, seen from the agent's first cell and heading",
    "count": "how many there are",
}
HAPPENS = {
    "faced": "the agent faces {thing}",
    "taken": "{thing} has just gone from its cell",
    "changed": "{thing} has just changed in its cell",
    "placed": "{thing} has just come to a cell",
    "entered": "the agent stands where {thing} was at the start",
}

AGREES = '''
def agrees(meanings, words, thing):
    """Whether a thing is what the words say, as far as they have a meaning."""
    return not any(
        word in values and feature in thing and not values[word] & thing[feature]
        for feature, values in meanings.items()
        for word in words
    )
'''
NOVEL = '''

def speaks_of_something_new(self, words):
    """Whether a word was never seen before, and something at the start has a feature that no word names."""
    if PLAIN.union(*ALL.values()).issuperset(words):
        return False
    cells = [tuple(cell) for cell in np.argwhere(self.first[:, :, 0] >= 0).tolist()]
    codes = [(cell, code_at(self.first, cell)) for cell in cells]
    return any(self.unnamed(words, FEATURES) for cell, code in codes if is_thing(code))

def unnamed(self, words, thing):
    """Whether a thing has a feature that these words leave open and no known word names."""
    return any(
        thing[feature] - set().union(*values.values())
        for feature, values in ALL.items()
        if feature in thing and not any(word in values for word in words)
    )'''
BESIDE = '''

    def paired(self, state, event, cell, code):
        """How well what has happened fits, and the other thing stands in a neighbouring cell."""
        fit = self.fits(self.steps[0], event, cell, code)
        if len(self.steps) == 1 or not fit:
            return fit
        best = 0.0
        for down, across in ((1, 0), (0, 1), (-1, 0), (0, -1)):
            neighbour = (cell[0] + down, cell[1] + across)
            code = code_at(state, neighbour)
            if code is not None and is_thing(code):
                other = {0: {code[0]}, 1: {code[1]}, 2: {code[2]}}
                best = max(best, self.described(self.steps[1], other))
        return min(fit, best)'''


def _wrapped(assignment: str, comment: str) -> list[str]:
    """An assignment of a set with a comment, broken over lines where it is long."""
    if len(assignment) + len(comment) < 105:
        return [f"{assignment}  # {comment}"]
    head, _, rest = assignment.partition("{")
    body = fill(rest.removesuffix("}"), 100, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return [f"{head}{{  # {comment}", body + ",", "}"]


def write_source(
    hypothesis: Hypothesis, perception: Perception, vocabulary: Sequence[str], phrases: Sequence[str] = ()
) -> str:
    """The program of a hypothesis.

    Args:
        vocabulary: every word and phrase that the training instructions used.
        phrases: words that are read as one.
    """
    return _Writer(hypothesis, perception, vocabulary, phrases).write()


def summary(hypothesis: Hypothesis) -> str:
    """What the program watches for, as half a sentence."""
    return _Writer(hypothesis, Perception(None, ()), (), ()).summary()


class _Writer:
    def __init__(
        self,
        hypothesis: Hypothesis,
        perception: Perception,
        vocabulary: Sequence[str],
        phrases: Sequence[str],
    ) -> None:
        self.hypothesis = hypothesis
        self.perception = perception
        self.usual = {f.feature: f for f in hypothesis.constants}
        self.by_feature: dict[Feature, dict[str, tuple[Filter, ...]]] = {}
        for word, filters in hypothesis.meanings:
            self.by_feature.setdefault(filters[0].feature, {})[word] = filters
        self.guessed: dict[Feature, dict[str, tuple[Filter, ...]]] = {}
        for word, filters in hypothesis.guesses:
            self.guessed.setdefault(filters[0].feature, {})[word] = filters
        spoken = {*dict(hypothesis.meanings), *dict(hypothesis.guesses)}
        self.plain = tuple(word for word in vocabulary if word not in spoken)
        # Phrases matter where a word of theirs could be taken for something else: when one of them means something.
        needed = {*spoken, hypothesis.plan.separator}
        self.phrases = tuple(phrase for phrase in phrases if phrase in needed)
        if not self.phrases or len(self.phrases) < len(phrases):
            kept = [w for phrase in self.plain for w in ([phrase] if phrase in self.phrases else phrase.split())]
            self.plain = tuple(dict.fromkeys(kept))
        verbs = [f for words in (self.by_feature, self.guessed) for fs in words.get("event", {}).values() for f in fs]
        self.events = sorted({EVENTS[f.value] for f in [self.usual["event"], *verbs]}, key=EVENTS.index)
        self.sides = "side" in {*self.by_feature, *self.guessed, *self.usual}
        self.novel = hypothesis.novel if self.by_feature or self.guessed else "ignore"
        self.words = bool(self.by_feature or self.guessed)
        self.graded = bool(self.guessed) or self.novel == "guess"
        self.beside = hypothesis.plan.arrangement == "beside"
        self.steps = hypothesis.plan.arrangement in ("then", "after", "both")

    def write(self) -> str:
        blocks = [self._docstring(), self._imports(), self._constants(), *self._functions(), self._reward()]
        return "\n\n\n".join(block.strip("\n") for block in blocks if block).replace("\n\n\n\n", "\n\n\n") + "\n"

    def summary(self) -> str:
        thing = "the thing that the instruction describes" if self.words else "such a thing"
        kinds = [f"{f.feature} {f.value}" for name, f in sorted(self.usual.items()) if name != "event"]
        if not self.words:
            thing = f"a thing with {' and '.join(kinds)}" if kinds else "a thing"
        if len(self.events) > 1:
            text = f"what the instruction says has just happened to {thing}"
        else:
            text = HAPPENS[self.events[0]].format(thing=thing)
        if self.beside:
            text += ", beside the other thing that it describes"
        if self.steps:
            text += ", and so the last step of the instruction is done"
        return text

    def _docstring(self) -> str:
        return f'"""Reward 1.0 where {self.summary()}; 0.0 elsewhere."""'

    def _imports(self) -> str:
        return "import re\n\nimport numpy as np" if self.words or self.steps else "import numpy as np"

    def _constants(self) -> str:
        agent = self.perception.agent
        lines = []
        if agent is not None:
            lines.append(f"AGENT = ({agent.channel}, {agent.code})  # the channel and code of the one thing that moves")
            if agent.heading_channel is not None and ("faced" in self.events or self.sides):
                ahead = ", ".join(f"{code}: {offset}" for code, offset in agent.headings)
                lines.append(f"AHEAD = {{{ahead}}}  # channel {agent.heading_channel} of its cell: one step ahead")
        background = ", ".join(map(str, self.perception.background))
        lines.append(f"BACKGROUND = ({background},)  # cells without a thing")
        usual = {KEYS[name]: self._value(f) for name, f in sorted(self.usual.items()) if self._checked(f)}
        if usual:
            inner = ", ".join(f"{key}: {value}" for key, value in usual.items())
            lines.append(f"ALWAYS = {{{inner}}}  # what the thing has to be, whatever the instruction says")
        if self.phrases:
            quoted = ", ".join(f'"{phrase}"' for phrase in self.phrases)
            lines.append(f"PHRASES = [{quoted}]  # words that are read as one")
        if self.by_feature:
            lines.append("# What a word says about a thing: by feature, the values of which it must have one.")
            lines += self._dictionary("WORDS", self.by_feature)
        if self.guessed:
            lines.append("# What a word may well say, as far as the demonstrations show.")
            lines += self._dictionary("GUESSES", self.guessed)
        if self.novel != "ignore":
            quoted = ", ".join(f'"{word}"' for word in self.plain)
            lines += _wrapped(
                f"PLAIN = {{{quoted}}}" if quoted else "PLAIN = set()", "words that say nothing about a thing"
            )
        return "\n".join(lines)

    def _dictionary(self, name: str, by_feature: dict[Feature, dict[str, tuple[Filter, ...]]]) -> list[str]:
        lines = [f"{name} = {{"]
        for feature, words in sorted(by_feature.items()):
            lines.append(f"    {KEYS[feature]}: {{  # {SAYS[feature]}")
            for word, filters in sorted(words.items()):
                lines.append(f'        "{word}": {{{", ".join(self._value(f) for f in filters)}}},')
            lines.append("    },")
        return [*lines, "}"]

    def _checked(self, f: Filter) -> bool:
        """Whether a constant has to be checked: with a single kind of happening there is no other event."""
        return f.feature != "event" or len(self.events) > 1

    @staticmethod
    def _value(f: Filter) -> str:
        if f.feature == "event":
            return f'"{EVENTS[f.value]}"'
        return f'"{SIDES[f.value]}"' if f.feature == "side" else str(f.value)

    def _functions(self) -> list[str]:
        agent = self.perception.agent
        parts = []
        if agent is not None:
            parts.append('''
def agent_cell(state):
    """Row and column of the agent, or None where it cannot be seen."""
    rows, columns = np.nonzero(state[:, :, AGENT[0]] == AGENT[1])
    return (int(rows[0]), int(columns[0])) if len(rows) else None
''')
        shown = f" and code[{agent.channel}] != {agent.code}" if agent is not None else ""
        parts.append(f'''
def is_thing(code):
    """Whether a cell with this code holds a thing."""
    return code not in BACKGROUND{shown}
''')
        parts.append('''
def code_at(state, cell):
    """The code of a cell, or None outside the grid."""
    if 0 <= cell[0] < state.shape[0] and 0 <= cell[1] < state.shape[1]:
        return tuple(state[cell].tolist())
    return None
''')
        if "faced" in self.events and agent is not None:
            parts.append(f'''
def faced(state):
    """The cell ahead of the agent and its code, where it holds a thing."""
    here = agent_cell(state)
    step = AHEAD.get(int(state[here][{agent.heading_channel}])) if here else None
    if step is not None:
        cell = (here[0] + step[0], here[1] + step[1])
        code = code_at(state, cell)
        if code is not None and is_thing(code):
            yield "faced", cell, code
''')
        if {"taken", "changed", "placed"} & set(self.events):
            parts.append(self._differences())
        if "entered" in self.events:
            parts.append('''
def entered(first, state):
    """The agent's cell and what was in it at the start, where that was a thing."""
    here = agent_cell(state)
    if here is not None and is_thing(code_at(first, here)):
        yield "entered", here, code_at(first, here)
''')
        if self.sides and agent is not None:
            parts.append(f'''
def sides(first, cell):
    """On which sides of the agent's first cell and heading a cell lies."""
    here = agent_cell(first)
    ahead = AHEAD.get(int(first[here][{agent.heading_channel}]), (0, 0))
    down, across = cell[0] - here[0], cell[1] - here[1]
    forward = down * ahead[0] + across * ahead[1]
    sideways = across * ahead[0] - down * ahead[1]
    where = {{"ahead": forward > 0, "behind": forward < 0, "left": sideways < 0, "right": sideways > 0}}
    return {{side for side, holds in where.items() if holds}}
''')
        if self.words:
            parts.append(AGREES)
        return parts

    def _differences(self) -> str:
        agent = self.perception.agent
        hidden = ""
        if agent is not None:
            channel = agent.channel
            hidden = f"""
        if {agent.code} in (old[{channel}], new[{channel}]):
            continue  # what is under the agent cannot be seen"""
        branches = []
        for event, condition, code in (
            ("taken", "is_thing(old) and not is_thing(new)", "old"),
            ("changed", "is_thing(old) and is_thing(new)", "new"),
            ("placed", "is_thing(new) and not is_thing(old)", "new"),
        ):
            if event in self.events:
                branches.append(f'if {condition}:\n            yield "{event}", cell, {code}')
        body = "\n        ".join(branches)
        return f'''
def differences(before, state):
    """What has happened to things between two states: the event, the cell and the thing's code."""
    for cell in np.argwhere((before != state).any(axis=2)).tolist():
        cell = tuple(cell)
        old, new = code_at(before, cell), code_at(state, cell){hidden}
        {body}
'''

    def _reward(self) -> str:
        sources = []
        if "faced" in self.events:
            sources.append("*faced(state)")
        if {"taken", "changed", "placed"} & set(self.events):
            sources.append("*differences(self.before, state)")
        if "entered" in self.events:
            sources.append("*entered(self.first, state)")
        happenings = ", ".join(sources)
        lines = [
            "class Reward:",
            f'    """1.0 where {self.summary()}."""',
            "",
            self._init(),
            "",
            self._reward_fn(happenings),
        ]
        if self.words or self._always():
            lines += ["", self._fits()]
        if self.words:
            lines += ["", self._novel()]
        lines += ["", self._debug()]
        return "\n".join(lines)

    def _always(self) -> bool:
        return any(self._checked(f) for f in self.usual.values())

    def _init(self) -> str:
        lines = ["def __init__(self, extra_info=None):"]
        if self.words or self.steps:
            lines.append('    words = re.findall(r"[^\\W_]+", (extra_info or "").lower())')
            if self.phrases:
                lines.append('    words = re.findall("|".join([*PHRASES, r"\\S+"]), " ".join(words))')
            plan = self.hypothesis.plan
            if plan.arrangement == "whole":
                lines.append("    self.steps = [words]  # the words of each step")
            else:
                lines.append("    self.steps = [words]  # the words of each step, in the order to do them in")
                lines.append(f'    if "{plan.separator}" in words:')
                lines.append(f'        at = words.index("{plan.separator}")')
                pair = "words[at + 1 :], words[:at]" if plan.arrangement == "after" else "words[:at], words[at + 1 :]"
                lines.append(f"        self.steps = [{pair}]")
            if self.steps:
                lines.append("    self.done = [0.0 for _ in self.steps]")
        lines += [
            "    self.first = None  # the first state",
            "    self.before = None  # the state before this one",
        ]
        return indent("\n".join(lines), "    ")

    def _condition(self, words: str) -> str:
        return f"self.fits({words}, *happening)" if self.words or self._always() else "True"

    def _reward_fn(self, happenings: str) -> str:
        lines = [
            "def reward_fn(self, state) -> float:",
            "    state = np.asarray(state).astype(int)",
            "    if self.first is None:  # nothing has happened yet",
            "        self.first = self.before = state",
            "        return 0.0",
            f"    happenings = [{happenings}]",
            "    self.before = state",
        ]
        if self.beside:
            lines.append("    return max((self.paired(state, *happening) for happening in happenings), default=0.0)")
        elif self.steps:
            ordered = self.hypothesis.plan.arrangement != "both"
            lines.append("    just_done = False")
            lines.append("    for i, words in enumerate(self.steps):")
            lines.append(f"        now = {self._value_of('words')}")
            if ordered:
                lines.append("        now = now if all(self.done[:i]) else 0.0")
                lines.append("        just_done = now > 0")
            else:
                lines.append("        just_done = just_done or now > 0")
            lines.append("        self.done[i] = max(self.done[i], now)")
            lines.append("    return min(self.done) if just_done else 0.0")
        else:
            lines.append(f"    return {self._value_of('self.steps[0]')}")
        text = indent("\n".join(lines), "    ")
        if self.beside:
            text += BESIDE
        return text

    def _value_of(self, words: str) -> str:
        """The expression for the best reward of what has just happened."""
        if self.words:
            return f"max((self.fits({words}, *happening) for happening in happenings), default=0.0)"
        if self._always():
            return "1.0 if any(self.fits(*happening) for happening in happenings) else 0.0"
        return "1.0 if happenings else 0.0"

    def _fits(self) -> str:
        if not self.words:
            return indent(
                "def fits(self, event, cell, code):\n"
                '    """Whether what has happened is what had to happen."""\n'
                f"    thing = {self._features()}\n"
                "    return all(value in thing[feature] for feature, value in ALWAYS.items())",
                "    ",
            )
        lines = [
            "def fits(self, words, event, cell, code):",
            '    """How well what has happened fits what had to happen, 0.0 to 1.0."""',
            f"    thing = {self._features()}",
        ]
        if self._always():
            skip = ""
            if "event" in self.by_feature or "event" in self.guessed:
                verbs = " or ".join(
                    f'word in {name}["event"]'
                    for name, d in (("WORDS", self.by_feature), ("GUESSES", self.guessed))
                    if "event" in d
                )
                lines.append(f"    verb = any({verbs} for word in words)")
                skip = ' and not (verb and feature == "event")'
            lines.append(f"    if any(value not in thing[feature]{skip} for feature, value in ALWAYS.items()):")
            lines.append("        return 0.0")
        lines.append("    return self.described(words, thing)")
        return indent("\n".join(lines), "    ")

    def _features(self, *, event: bool = True) -> str:
        happening = '"event": {event}, ' if event and len(self.events) > 1 else ""
        side = ', "side": sides(self.first, cell)' if self.sides else ""
        return f"{{{happening}0: {{code[0]}}, 1: {{code[1]}}, 2: {{code[2]}}{side}}}"

    def _novel(self) -> str:
        lines = [
            "def described(self, words, thing):",
            '    """How well the words describe the thing, 0.0 to 1.0."""',
        ]
        half = "0.5" if self.graded else "1.0"
        if self.by_feature:
            lines += ["    if not agrees(WORDS, words, thing):", "        return 0.0"]
        if self.novel == "require":
            lines += [
                "    if self.speaks_of_something_new(words) and not self.unnamed(words, thing):",
                "        return 0.0",
            ]
        doubts = ["not agrees(GUESSES, words, thing)"] if self.guessed else []
        if self.novel == "guess":
            doubts.append("(self.speaks_of_something_new(words) and not self.unnamed(words, thing))")
        lines.append(f"    return {half} if {' or '.join(doubts)} else 1.0" if doubts else "    return 1.0")
        text = "\n".join(lines)
        if self.novel != "ignore":
            text += NOVEL.replace("FEATURES", self._features(event=False)).replace("ALL", self._all_words())
        return indent(text, "    ")

    def _all_words(self) -> str:
        names = [name for name, d in (("WORDS", self.by_feature), ("GUESSES", self.guessed)) if d]
        return names[0] if len(names) == 1 else "{**GUESSES, **WORDS}"

    def _debug(self) -> str:
        lines = [
            "def debug_fn(self, state) -> str:",
            "    state = np.asarray(state).astype(int)",
        ]
        if self.perception.agent is not None:
            lines.append("    here = agent_cell(state)")
            lines.append(
                '    return f"agent at {here}"' + (' + f", steps {self.steps}"' if self.words or self.steps else "")
            )
        else:
            lines.append('    return f"{len(np.unique(state.reshape(-1, 3), axis=0))} different codes"')
        return indent("\n".join(lines), "    ")
