"""Writes a reading of the demonstrations as a reward program that a person can read.

Only what the reading needs is written: a program that looks at no words has no dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill, indent

from grace_irl.propose.synthesis.grid import fragments
from grace_irl.propose.synthesis.grid.meaning import Feature, Filter, Hypothesis
from grace_irl.propose.synthesis.grid.perception import Perception
from grace_irl.propose.synthesis.grid.scene import EVENTS, SIDES
from grace_irl.propose.synthesis.quote import packed, quoted

WIDTH, MAX_WIDTH = 100, 120
"""Characters that a line is broken at, and of the longest that is left whole."""
KEYS: dict[Feature, str] = {"channel 0": "0", "channel 1": "1", "channel 2": "2"}
"""How a feature is written in the program, where that is not its name in quotes."""
SAYS: dict[Feature, str] = {
    "event": "what happens to the thing",
    "channel 0": "channel 0 of its code",
    "channel 1": "channel 1 of its code",
    "channel 2": "channel 2 of its code",
    "side": "where it lies, seen from the agent's first cell and heading",
}
HAPPENS = {
    "faced": "the agent faces {thing}",
    "taken": "{thing} has just gone from its cell",
    "changed": "{thing} has just changed in its cell",
    "placed": "{thing} has just come to a cell",
    "entered": "the agent stands where {thing} was at the start",
}
ByFeature = dict[Feature, dict[str, tuple[Filter, ...]]]


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
    usual = {f.feature: f for f in hypothesis.constants}
    verbs = [f for _, filters in (*hypothesis.meanings, *hypothesis.guesses) for f in filters if f.feature == "event"]
    events = {EVENTS[f.value] for f in [usual["event"], *verbs]}
    if hypothesis.meanings or hypothesis.guesses:
        thing = "the thing that the instruction describes"
    else:
        kinds = [str(f) for name, f in sorted(usual.items()) if name != "event"]
        thing = f"a thing with {' and '.join(kinds)}" if kinds else "a thing"
    if len(events) > 1:
        text = f"what the instruction says has just happened to {thing}"
    else:
        text = HAPPENS[events.pop()].format(thing=thing)
    if hypothesis.plan.arrangement == "beside":
        text += ", beside the other thing that it describes"
    if hypothesis.plan.arrangement in ("then", "after", "both"):
        text += ", as the last step of the instruction"
    return text


class _Writer:
    def __init__(
        self, hypothesis: Hypothesis, perception: Perception, vocabulary: Sequence[str], phrases: Sequence[str]
    ) -> None:
        self.hypothesis = hypothesis
        self.perception = perception
        self.usual = {f.feature: f for f in hypothesis.constants}
        self.sure, self.guessed = _by_feature(hypothesis.meanings), _by_feature(hypothesis.guesses)
        self.words = bool(self.sure or self.guessed)
        self.described = self.words or hypothesis.plan.arrangement == "beside"
        self.novel = hypothesis.novel if self.words else "ignore"
        self.plan = hypothesis.plan
        self.steps = self.plan.arrangement in ("then", "after", "both")
        self.beside = self.plan.arrangement == "beside"
        spoken = {*dict(hypothesis.meanings), *dict(hypothesis.guesses), self.plan.separator}
        # A phrase is read as one where it means something: else its words may as well stand alone.
        self.phrases = tuple(phrase for phrase in phrases if phrase in spoken)
        plain = [w for word in vocabulary if word not in spoken for w in word.split()] + [self.plan.separator]
        self.plain = tuple(dict.fromkeys(word for word in plain if word))
        verbs = [f for words in (self.sure, self.guessed) for fs in words.get("event", {}).values() for f in fs]
        self.events = sorted({EVENTS[f.value] for f in [self.usual["event"], *verbs]}, key=EVENTS.index)
        self.sides = "side" in {*self.sure, *self.guessed, *self.usual}
        self.first = self.sides or "entered" in self.events or self.novel != "ignore"
        # With a single kind of happening there is no other event to tell it from.
        self.always = [f for f in hypothesis.constants if f.feature != "event" or len(self.events) > 1]

    def write(self) -> str:
        about = fill(f"Reward 1.0 where {summary(self.hypothesis)}; 0.0 elsewhere.", WIDTH)
        docstring = f'"""{about}{chr(10) if chr(10) in about else ""}"""'
        imports = "import re\n\nimport numpy as np" if self.words or self.steps or self.beside else "import numpy as np"
        head = "\n\n".join([docstring, imports, "\n".join(self._constants())])
        return "\n\n\n".join(block.strip("\n") for block in [head, *self._functions(), self._class()]) + "\n"

    def _constants(self) -> list[str]:
        agent = self.perception.agent
        lines = []
        if agent is not None:
            lines.append(f"AGENT = ({agent.channel}, {agent.code})  # the channel and code of the one thing that moves")
            if agent.heading_channel is not None and ("faced" in self.events or self.sides):
                ahead = ", ".join(f"{code}: {offset}" for code, offset in agent.headings)
                lines.append(f"AHEAD = {{{ahead}}}  # channel {agent.heading_channel} of its cell: one step ahead")
        lines.append(f"BACKGROUND = {self.perception.background}  # cells without a thing")
        if self.always:
            entries = [f"{_key(f.feature)}: {_value(f)}" for f in self.always]
            lines += _packed("ALWAYS = {", entries, "}", "what the thing has to be, whatever the instruction says")
        if self.phrases:
            lines += _packed("PHRASES = [", map(quoted, self.phrases), "]", "words that are read as one")
        if self.sure:
            lines += ["# What a word says about a thing: by feature, the values of which it must have one."]
            lines += _dictionary("WORDS", self.sure)
        if self.guessed:
            lines += ["# What a word may well say, as far as the demonstrations show."]
            lines += _dictionary("GUESSES", self.guessed)
        if self.novel != "ignore":
            lines += self._names()
        return lines

    def _names(self) -> list[str]:
        """Everything that has a name, for words that were never seen before."""
        both = set(self.sure) & set(self.guessed)
        lines = []
        if not self.guessed or not self.sure:
            lines.append(f"NAMES = {'WORDS' if self.sure else 'GUESSES'}")
        elif both:
            lines.append("NAMES = {f: {**GUESSES.get(f, {}), **WORDS.get(f, {})} for f in {**GUESSES, **WORDS}}")
        else:
            lines.append("NAMES = {**GUESSES, **WORDS}")
        if not self.plain:
            return [*lines, "PLAIN = set()  # words that say nothing about a thing"]
        return [*lines, *_packed("PLAIN = {", map(quoted, self.plain), "}", "words that say nothing about a thing")]

    def _functions(self) -> list[str]:
        agent = self.perception.agent
        but_agent = " and code[AGENT[0]] != AGENT[1]" if agent is not None else ""
        parts = [fragments.IS_THING.substitute(but_agent=but_agent), fragments.CODE_AT]
        heading = {"heading": agent.heading_channel} if agent is not None else {}
        if agent is not None and (self.sides or {"faced", "entered"} & set(self.events)):
            parts.insert(0, fragments.AGENT_CELL)
        if "faced" in self.events:
            parts.append(fragments.FACED.substitute(heading))
        if set(fragments.BRANCHES) & set(self.events):
            parts.append(self._differences())
        if "entered" in self.events:
            parts.append(fragments.ENTERED)
        if self.sides:
            parts.append(fragments.SIDES.substitute(heading))
        if self.words:
            parts.append(fragments.AGREES)
        if self.novel != "ignore":
            parts.append(fragments.UNNAMED)
        return parts

    def _differences(self) -> str:
        hidden = fragments.HIDDEN if self.perception.agent is not None else ""
        branches = [
            f'        if {condition}:\n            yield "{event}", cell, {code}'
            for event, (condition, code) in fragments.BRANCHES.items()
            if event in self.events
        ]
        return fragments.DIFFERENCES.substitute(hidden=hidden, branches="\n".join(branches))

    def _class(self) -> str:
        methods = [self._init(), self._reward_fn()]
        if self.beside:
            methods.append(fragments.PAIRED)
        if self.described or self.always:
            methods.append(self._fits())
        if self.described:
            methods.append(self._described())
        if self.novel != "ignore":
            methods.append(fragments.NOVEL.substitute(features=self._features("self.first")))
        methods.append(self._debug())
        body = "\n\n".join(indent(method.strip("\n"), "    ") for method in methods)
        about = "One trajectory: its instruction, and what has happened so far."
        return f'class Reward:\n    """{about}"""\n\n{body}'

    def _init(self) -> str:
        lines = ["def __init__(self, extra_info=None):"]
        if self.words or self.steps or self.beside:
            lines.append('    words = re.findall(r"[^\\W_]+", (extra_info or "").lower())')
            if self.phrases:
                lines.append(r"""    words = re.findall(rf"(?:{'|'.join(PHRASES)})\b|\S+", " ".join(words))""")
            if self.plan.arrangement == "whole":
                lines.append("    self.words = words")
            else:
                order = "the thing's words, then its neighbour's" if self.beside else "in the order to do them in"
                lines.append(f"    self.steps = [words]  # the words of each step, {order}")
                separator = quoted(self.plan.separator)
                lines.append(f"    if {separator} in words:")
                lines.append(f"        at = words.index({separator})")
                pair = "words[:at], words[at + 1 :]"
                if self.plan.arrangement == "after":
                    pair = "words[at + 1 :], words[:at]"
                lines.append(f"        self.steps = [{pair}]")
            if self.steps:
                lines.append("    self.done = [0.0 for _ in self.steps]")
        if self.first:
            lines.append("    self.first = None  # the first state")
        lines.append("    self.before = None  # the state before this one")
        return "\n".join(lines)

    def _happenings(self) -> str:
        sources = []
        if "faced" in self.events:
            sources.append("faced(state)")
        if set(fragments.BRANCHES) & set(self.events):
            sources.append("differences(before, state)")
        if "entered" in self.events:
            sources.append("entered(self.first, state)")
        return f"list({sources[0]})" if len(sources) == 1 else f"[{', '.join(f'*{source}' for source in sources)}]"

    def _reward_fn(self) -> str:
        lines = [
            "def reward_fn(self, state) -> float:",
            "    state = np.asarray(state).astype(int)",
            "    before, self.before = self.before, state",
            "    if before is None:  # nothing has happened yet",
            *(["        self.first = state"] if self.first else []),
            "        return 0.0",
            f"    happenings = {self._happenings()}",
        ]
        if self.beside:
            lines.append("    return max((self.paired(state, *happening) for happening in happenings), default=0.0)")
        elif self.steps:
            lines += [
                "    just_done = 0.0",
                "    for i, words in enumerate(self.steps):",
                f"        now = {self._score('words')}",
            ]
            if self.plan.arrangement == "both":
                lines.append("        just_done = max(just_done, now)")
            else:
                lines.append("        now = min([now, *self.done[:i]])  # not before the steps before it")
                lines.append("        just_done = now")
            lines.append("        self.done[i] = max(self.done[i], now)")
            lines.append("    return min([just_done, *self.done])")
        else:
            lines.append(f"    return {self._score('self.words')}")
        return "\n".join(lines)

    def _score(self, words: str) -> str:
        """The expression for the best reward of what has just happened."""
        if self.words:
            return f"max((self.fits({words}, *happening) for happening in happenings), default=0.0)"
        if self.always:
            return "1.0 if any(self.fits(*happening) for happening in happenings) else 0.0"
        return "1.0 if happenings else 0.0"

    def _features(self, first: str) -> str:
        """The expression for what can be said of a thing."""
        side = f', "side": sides({first}, cell)' if self.sides else ""
        return f"{{0: {{code[0]}}, 1: {{code[1]}}, 2: {{code[2]}}{side}}}"

    def _fits(self) -> str:
        thing = self._features("self.first")
        if len(self.events) > 1:
            thing = '{"event": {event}, ' + thing.removeprefix("{")
        if not self.described:
            return (
                "def fits(self, event, cell, code):\n"
                '    """Whether what has happened is what had to happen."""\n'
                f"    thing = {thing}\n"
                "    return all(value in thing[feature] for feature, value in ALWAYS.items())"
            )
        lines = [
            "def fits(self, words, event, cell, code):",
            '    """How well what has happened fits what had to happen, 0.0 to 1.0."""',
            f"    thing = {thing}",
        ]
        skip = ""
        if self.always:
            verbs = [name for name, d in (("WORDS", self.sure), ("GUESSES", self.guessed)) if "event" in d]
            if verbs:
                said = " or ".join(f'word in {name}["event"]' for name in verbs)
                lines.append(f"    verb = any({said} for word in words)")
                skip = ' and not (verb and feature == "event")'
            lines.append(f"    if any(value not in thing[feature]{skip} for feature, value in ALWAYS.items()):")
            lines.append("        return 0.0")
        return "\n".join([*lines, "    return self.described(words, thing)"])

    def _described(self) -> str:
        lines = ["def described(self, words, thing):", '    """How well the words describe the thing, 0.0 to 1.0."""']
        if self.sure:
            lines += ["    if not agrees(WORDS, words, thing):", "        return 0.0"]
        if self.novel == "require":
            lines += ["    if self.speaks_of_something_new(words) and not unnamed(words, thing):", "        return 0.0"]
        if self.guessed:
            lines += ["    if not agrees(GUESSES, words, thing):", "        return 0.5"]
        if self.novel == "guess":
            lines += ["    if self.speaks_of_something_new(words) and not unnamed(words, thing):", "        return 0.5"]
        return "\n".join([*lines, "    return 1.0"])

    def _debug(self) -> str:
        """Called right after reward_fn: what the program saw, in one line."""
        lines = ["def debug_fn(self, state) -> str:", "    state = np.asarray(state).astype(int)"]
        seen = []
        if "faced" in self.events:
            seen.append("*faced(state)")
        if "entered" in self.events:
            seen.append("*entered(self.first, state)")
        if seen:
            lines.append(f"    happenings = [{', '.join(seen)}]")
            shown = "happenings"
        else:
            lines.append("    codes = {code_at(state, cell) for cell in np.ndindex(state.shape[:2])}")
            shown = "sorted(filter(is_thing, codes))"
        said = ""
        if self.words or self.steps or self.beside:
            said = "self.words" if self.plan.arrangement == "whole" else "self.steps"
            said = f"{{{said}}}: "
        return "\n".join([*lines, f'    return f"{said}{{{shown}}}"'])


def _by_feature(meanings: Sequence[tuple[str, tuple[Filter, ...]]]) -> ByFeature:
    grouped: ByFeature = {}
    for word, filters in meanings:
        grouped.setdefault(filters[0].feature, {})[word] = filters
    return grouped


def _key(feature: Feature) -> str:
    return KEYS.get(feature, f'"{feature}"')


def _value(f: Filter) -> str:
    if f.feature == "event":
        return f'"{EVENTS[f.value]}"'
    return f'"{SIDES[f.value]}"' if f.feature == "side" else str(f.value)


def _packed(head: str, entries: Iterable[str], tail: str, comment: str) -> list[str]:
    """A collection, on one line where it fits."""
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
