"""Writes a reading of the demonstrations as a reward program that a person can read.

Only what the reading needs is written: a program that looks at no words has no dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, indent

from grace_irl.propose.synthesis.grid import fragments
from grace_irl.propose.synthesis.grid.constants import WIDTH, write_constants
from grace_irl.propose.synthesis.grid.meaning import Hypothesis
from grace_irl.propose.synthesis.grid.outline import Outline
from grace_irl.propose.synthesis.grid.perception import Perception
from grace_irl.propose.synthesis.grid.summary import summary
from grace_irl.propose.synthesis.quote import quoted


def write_source(
    hypothesis: Hypothesis, perception: Perception, vocabulary: Sequence[str], phrases: Sequence[str] = ()
) -> str:
    """The program of a hypothesis.

    Args:
        vocabulary: every word and phrase that the training instructions used.
        phrases: words that are read as one.
    """
    about = fill(f"Reward 1.0 where {summary(hypothesis)}; 0.0 elsewhere.", WIDTH)
    outline = Outline.of(hypothesis, perception, vocabulary, phrases)
    docstring = f'"""{about}{chr(10) if chr(10) in about else ""}"""'
    imports = "import re\n\nimport numpy as np" if outline.instructed else "import numpy as np"
    head = "\n\n".join([docstring, imports, "\n".join(write_constants(outline))])
    blocks = [head, *_functions(outline), _RewardClass(outline).write()]
    return "\n\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _functions(outline: Outline) -> list[str]:
    agent = outline.perception.agent
    but_agent = " and code[AGENT[0]] != AGENT[1]" if agent is not None else ""
    parts = [fragments.IS_THING.substitute(but_agent=but_agent), fragments.CODE_AT]
    heading = {"heading": agent.heading_channel} if agent is not None else {}
    if agent is not None and (outline.sides or {"faced", "entered"} & set(outline.events)):
        parts.insert(0, fragments.AGENT_CELL)
    if "faced" in outline.events:
        parts.append(fragments.FACED.substitute(heading))
    if set(fragments.BRANCHES) & set(outline.events):
        parts.append(_differences(outline))
    if "entered" in outline.events:
        parts.append(fragments.ENTERED)
    if outline.sides:
        parts.append(fragments.SIDES.substitute(heading))
    if outline.words:
        parts.append(fragments.AGREES)
    if outline.novel != "ignore":
        parts.append(fragments.UNNAMED)
    return parts


def _differences(outline: Outline) -> str:
    hidden = fragments.HIDDEN if outline.perception.agent is not None else ""
    branches = [
        f'        if {condition}:\n            yield "{event}", cell, {code}'
        for event, (condition, code) in fragments.BRANCHES.items()
        if event in outline.events
    ]
    return fragments.DIFFERENCES.substitute(hidden=hidden, branches="\n".join(branches))


class _RewardClass:
    """The class of a program."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline

    def write(self) -> str:
        methods = [self._init(), self._reward_fn()]
        if self.outline.beside:
            methods.append(fragments.PAIRED)
        if self.outline.described or self.outline.always:
            methods.append(self._fits())
        if self.outline.described:
            methods.append(self._described())
        if self.outline.novel != "ignore":
            methods.append(fragments.NOVEL.substitute(features=self._features("self.first")))
        methods.append(self._debug())
        body = "\n\n".join(indent(method.strip("\n"), "    ") for method in methods)
        about = "One trajectory: its instruction, and what has happened so far."
        return f'class Reward:\n    """{about}"""\n\n{body}'

    def _init(self) -> str:
        lines = ["def __init__(self, extra_info=None):"]
        if self.outline.instructed:
            lines.append('    words = re.findall(r"[^\\W_]+", (extra_info or "").lower())')
            if self.outline.phrases:
                lines.append(r"""    words = re.findall(rf"(?:{'|'.join(PHRASES)})\b|\S+", " ".join(words))""")
            if self.outline.plan.arrangement == "whole":
                lines.append("    self.words = words")
            else:
                order = (
                    "the thing's words, then its neighbour's" if self.outline.beside else "in the order to do them in"
                )
                lines.append(f"    self.steps = [words]  # the words of each step, {order}")
                separator = quoted(self.outline.plan.separator)
                lines.append(f"    if {separator} in words:")
                lines.append(f"        at = words.index({separator})")
                pair = "words[:at], words[at + 1 :]"
                if self.outline.plan.arrangement == "after":
                    pair = "words[at + 1 :], words[:at]"
                lines.append(f"        self.steps = [{pair}]")
            if self.outline.steps:
                lines.append("    self.done = [0.0 for _ in self.steps]")
        if self.outline.first:
            lines.append("    self.first = None  # the first state")
        lines.append("    self.before = None  # the state before this one")
        return "\n".join(lines)

    def _happenings(self) -> str:
        sources = []
        if "faced" in self.outline.events:
            sources.append("faced(state)")
        if set(fragments.BRANCHES) & set(self.outline.events):
            sources.append("differences(before, state)")
        if "entered" in self.outline.events:
            sources.append("entered(self.first, state)")
        return f"list({sources[0]})" if len(sources) == 1 else f"[{', '.join(f'*{source}' for source in sources)}]"

    def _reward_fn(self) -> str:
        lines = [
            "def reward_fn(self, state) -> float:",
            "    state = np.asarray(state).astype(int)",
            "    before, self.before = self.before, state",
            "    if before is None:  # nothing has happened yet",
            *(["        self.first = state"] if self.outline.first else []),
            "        return 0.0",
            f"    happenings = {self._happenings()}",
        ]
        if self.outline.beside:
            lines.append("    return max((self.paired(state, *happening) for happening in happenings), default=0.0)")
        elif self.outline.steps:
            lines += [
                "    just_done = 0.0",
                "    for i, words in enumerate(self.steps):",
                f"        now = {self._score('words')}",
            ]
            if self.outline.plan.arrangement == "both":
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
        if self.outline.words:
            return f"max((self.fits({words}, *happening) for happening in happenings), default=0.0)"
        if self.outline.always:
            return "1.0 if any(self.fits(*happening) for happening in happenings) else 0.0"
        return "1.0 if happenings else 0.0"

    def _features(self, first: str) -> str:
        """The expression for what can be said of a thing."""
        side = f', "side": sides({first}, cell)' if self.outline.sides else ""
        return f"{{0: {{code[0]}}, 1: {{code[1]}}, 2: {{code[2]}}{side}}}"

    def _fits(self) -> str:
        thing = self._features("self.first")
        if len(self.outline.events) > 1:
            thing = '{"event": {event}, ' + thing.removeprefix("{")
        if not self.outline.described:
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
        if self.outline.always:
            verbs = [
                name for name, d in (("WORDS", self.outline.sure), ("GUESSES", self.outline.guessed)) if "event" in d
            ]
            if verbs:
                said = " or ".join(f'word in {name}["event"]' for name in verbs)
                lines.append(f"    verb = any({said} for word in words)")
                skip = ' and not (verb and feature == "event")'
            lines.append(f"    if any(value not in thing[feature]{skip} for feature, value in ALWAYS.items()):")
            lines.append("        return 0.0")
        return "\n".join([*lines, "    return self.described(words, thing)"])

    def _described(self) -> str:
        lines = ["def described(self, words, thing):", '    """How well the words describe the thing, 0.0 to 1.0."""']
        if self.outline.sure:
            lines += ["    if not agrees(WORDS, words, thing):", "        return 0.0"]
        if self.outline.novel == "require":
            lines += ["    if self.speaks_of_something_new(words) and not unnamed(words, thing):", "        return 0.0"]
        if self.outline.guessed:
            lines += ["    if not agrees(GUESSES, words, thing):", "        return 0.5"]
        if self.outline.novel == "guess":
            lines += ["    if self.speaks_of_something_new(words) and not unnamed(words, thing):", "        return 0.5"]
        return "\n".join([*lines, "    return 1.0"])

    def _debug(self) -> str:
        """Called right after reward_fn: what the program saw, in one line."""
        lines = ["def debug_fn(self, state) -> str:", "    state = np.asarray(state).astype(int)"]
        seen = []
        if "faced" in self.outline.events:
            seen.append("*faced(state)")
        if "entered" in self.outline.events:
            seen.append("*entered(self.first, state)")
        if seen:
            lines.append(f"    happenings = [{', '.join(seen)}]")
            shown = "happenings"
        else:
            lines.append("    codes = {code_at(state, cell) for cell in np.ndindex(state.shape[:2])}")
            shown = "sorted(filter(is_thing, codes))"
        said = ""
        if self.outline.instructed:
            said = "self.words" if self.outline.plan.arrangement == "whole" else "self.steps"
            said = f"{{{said}}}: "
        return "\n".join([*lines, f'    return f"{said}{{{shown}}}"'])
