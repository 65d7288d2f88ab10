"""Writes a reading of the demonstrations as a reward program that a person can read.

Only what the reading needs is written: a program that looks at no words has no dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, indent

from grace_irl.synthesis.grid import fragments
from grace_irl.synthesis.grid.fragments import WIDTH, write_constants
from grace_irl.synthesis.grid.meaning import Arrangement, Hypothesis, Outline, Plan, summary
from grace_irl.synthesis.grid.progress import NOVEL, THINGS, ProgressParts, Shaping
from grace_irl.synthesis.grid.scene import Perception

ELSEWHERE = "0.0 elsewhere"


def write_source(
    hypothesis: Hypothesis, perception: Perception, vocabulary: Sequence[str], phrases: Sequence[str] = ()
) -> str:
    """The program of a hypothesis.

    Args:
        vocabulary: every word and phrase that the training instructions used.
        phrases: words that are read as one.
    """
    return write_program(Outline.of(hypothesis, perception, vocabulary, phrases), summary(hypothesis))


def write_program(outline: Outline, happens: str, shaping: Shaping | None = None) -> str:
    """The program of an outline.

    Args:
        happens: the condition of 1.0, as half a sentence.
        shaping: how it pays for progress; None if it pays for goals alone.
    """
    progress = ProgressParts(outline, shaping) if shaping else None
    about = fill(f"Reward 1.0 where {happens}; {progress.about if progress else ELSEWHERE}.", WIDTH)
    docstring = f'"""{about}{chr(10) if chr(10) in about else ""}"""'
    imports = "import re\n\nimport numpy as np" if outline.instructed else "import numpy as np"
    head = "\n\n".join([docstring, imports, "\n".join(write_constants(outline, shaping))])
    blocks = [head, *_functions(outline, shaping), _RewardClass(outline, progress).write()]
    return "\n\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _functions(outline: Outline, shaping: Shaping | None) -> list[str]:
    agent = outline.perception.agent
    but_agent = " and code[AGENT[0]] != AGENT[1]" if agent is not None else ""
    parts = [fragments.IS_THING.substitute(but_agent=but_agent), fragments.CODE_AT]
    heading = {"heading": agent.heading_channel} if agent is not None else {}
    if agent is not None and (shaping or outline.sides or {"faced", "entered"} & set(outline.events)):
        parts.insert(0, fragments.AGENT_CELL)
    if "faced" in outline.events:
        parts.append(fragments.FACED.substitute(heading))
    if set(fragments.BRANCHES) & set(outline.events):
        parts.append(_differences(outline))
    if "entered" in outline.events:
        parts.append(fragments.ENTERED)
    if outline.sides:
        parts.append(fragments.SIDES_OF.substitute(heading))
    if outline.words:
        parts.append(fragments.AGREES)
    if outline.novel != "ignore":
        parts.append(fragments.UNNAMED)
    if shaping:
        parts.append(THINGS)
    if outline.plan.of("both", "beside"):
        parts.append(fragments.CUT)
    if outline.plan.of("then", "after"):
        parts.append(_stages(outline.plan))
    return parts


def _stages(plan: Plan) -> str:
    """The function that takes an instruction apart."""
    orders: dict[tuple[Arrangement, ...], tuple[str, str]] = {
        ("then",): ("THEN", "before + after"),
        ("after",): ("AFTER", "after + before"),
        ("then", "after"): ("THEN | AFTER", "before + after if word in THEN else after + before"),
    }
    kinds: tuple[Arrangement, ...] = ("then", "after")
    order, both = orders[tuple(one for one in kinds if plan.of(one))]
    return fragments.STAGES.substitute(order=order, both=both, steps=_steps(plan))


def _steps(plan: Plan) -> str:
    """The expression for the steps of one stage, from its words."""
    if not plan.of("both"):
        return "[cut(words, BESIDE)]" if plan.beside else "[words]"
    return "[cut(step, BESIDE) for step in cut(words, BOTH)]" if plan.beside else "cut(words, BOTH)"


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

    def __init__(self, outline: Outline, progress: ProgressParts | None) -> None:
        self.outline = outline
        self.progress = progress

    def write(self) -> str:
        methods = [self._init(), self._reward_fn()]
        if self.outline.plan.beside:
            methods.append(fragments.PAIRED)
        if self.outline.described or self.outline.always:
            methods.append(self._fits())
        if self.outline.described:
            methods.append(self._described())
        if self.outline.novel != "ignore":
            novel = NOVEL if self.progress else fragments.NOVEL
            methods.append(novel.substitute(features=self._features("self.first")))
        if self.progress:
            methods += self.progress.methods()
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
            if not self.outline.plan.separators:
                lines.append("    self.words = words")
            elif not self.outline.plan.steps:
                lines.append(
                    "    self.parts = cut(words, BESIDE)  # what is said of the thing, and of others beside it"
                )
            else:
                ordered = self.outline.plan.of("then", "after")
                lines.append(f"    self.stages = {'stages(words)' if ordered else f'[{_steps(self.outline.plan)}]'}")
                lines.append("    self.done = [[0.0 for _ in stage] for stage in self.stages]  # how well, so far")
        if self.outline.first:
            lines.append("    self.first = None  # the first state")
        lines.append("    self.before = None  # the state before this one")
        lines += [f"    {line}" for line in (self.progress.fields if self.progress else [])]
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
            *[f"        {line}" for line in (self.progress.begin if self.progress else [])],
            f"        return {'self.progress(state)' if self.progress else '0.0'}",
            f"    happenings = {self._happenings()}",
        ]
        if self.outline.plan.steps:
            lines += [
                "    level = 1.0  # no step counts for more than the stages before it",
                "    for stage, done in zip(self.stages, self.done):",
                "        just_done = 0.0",
                f"        for i, {'step' if self.outline.described else '_'} in enumerate(stage):",
                f"            now = min(level, {self._score('step')})",
                "            done[i] = max(done[i], now)",
                "            just_done = max(just_done, now)",
                "        level = min(done)",
                f"    return {self._paid('min(just_done, level)')}",
            ]
        else:
            score = self._score("self.parts" if self.outline.plan.beside else "self.words")
            if self.progress:
                lines.append(f"    goal = {score}")
            lines.append(f"    return {self._paid('goal' if self.progress else score)}")
        return "\n".join(lines)

    def _paid(self, goal: str) -> str:
        """The expression for the reward, from that for reaching the goal."""
        return f"max({goal}, self.progress(state))" if self.progress else goal

    def _score(self, words: str) -> str:
        """The expression for the best reward of what has just happened."""
        if self.outline.plan.beside:
            return f"max((self.paired({words}, state, *happening) for happening in happenings), default=0.0)"
        if self.outline.words:
            return f"max((self.fits({words}, *happening) for happening in happenings), default=0.0)"
        if self.outline.always:
            return "1.0 if any(self.fits(*happening) for happening in happenings) else 0.0"
        return "1.0 if happenings else 0.0"

    def _features(self, first: str) -> str:
        """The expression for a description of a thing."""
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
            plan = self.outline.plan
            said = f"{{self.{'stages' if plan.steps else 'parts' if plan.beside else 'words'}}}: "
        near = ", progress {self.progress(state):.3f}" if self.progress else ""
        return "\n".join([*lines, f'    return f"{said}{{{shown}}}{near}"'])
