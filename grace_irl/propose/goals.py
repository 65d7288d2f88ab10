"""Parser of a model's answer about goal states, and the record of such an answer (docs/runs.md, "Goal states").

In a goal state of an expert trajectory the task is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grace_irl.propose.answer import MAX_CHARS, tidy, without_thoughts
from grace_irl.propose.json_answer import objects
from grace_irl.propose.protocol import Finish

GOALS_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "trajectories": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "trajectory": {"type": "integer"},
                    "goal_states": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["trajectory", "goal_states"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["reasoning", "trajectories"],
    "additionalProperties": False,
}
"""JSON schema of an answer about goal states, for models that answer in the format "json"."""

_STATE_KEYS = ("goal_states", "goal_state_indexes", "goals", "states")
_LINE = re.compile(r"^(?:[^\w\n]|_)*trajectory\s*#?(\d+)[\W_]*?[:=][ \t*]*(.*)$", re.IGNORECASE | re.MULTILINE)
_NONE = re.compile(r"(?:none|no goal states?|-1|\[\s*\])\W*", re.IGNORECASE)
_STATES = re.compile(r"(?:states?\s+)?\[?\s*\d+(?:(?:\s*(?:,|and|-|\.\.)\s*|\s+)\d+)*\s*\]?\W*", re.IGNORECASE)
_RANGE = re.compile(r"(\d+)(?:\s*(?:-|\.\.)\s*(\d+))?")


@dataclass(frozen=True)
class Goals:
    """Goal states of all trajectories in a prompt, as parsed from the answer.

    Attributes:
        indices: for each trajectory, in the prompt's order, the sorted indices of its goal states, from 0; () for no
            goal state; None if the answer about the trajectory is missing or invalid.
        failure: one line that begins with the kind of failure; "" if every trajectory has a valid answer. The kinds
            are:

            - "refusal": the model or a filter declined.
            - "empty": no text.
            - "range": the number of a state is outside the trajectory.
            - "length": the token limit cut the answer.
            - "missing": there is no answer about a trajectory.
    """

    indices: tuple[tuple[int, ...] | None, ...]
    failure: str


def parse_goals(text: str, lengths: Sequence[int], finish: Finish = "stop") -> Goals:
    """Read goal states from an answer: JSON, or lines such as `trajectory 1: 4, 7`.

    Both formats are accepted, regardless of the format that the prompt requests.

    Args:
        text: the answer as the model sent it.
        lengths: number of states of each trajectory in the prompt, in order.
        finish: the reason why the model stopped.
    """
    if finish == "refusal":
        return Goals((None,) * len(lengths), "refusal: the model or a filter declined")
    body, _ = without_thoughts(tidy(text[:MAX_CHARS]))
    if not body.strip() and finish != "length":
        return Goals((None,) * len(lengths), "empty: no text")
    if finish == "length":  # the last line may end within a number
        body = body.rpartition("\n")[0]
    said = _of_json(body, len(lengths)) or _of_lines(body, len(lengths))
    indices: list[tuple[int, ...] | None] = []
    outside, missing = [], []
    for number, length in enumerate(lengths, start=1):
        states = said.get(number)
        wrong = [state for state in states or () if not 1 <= state <= length]
        if states is None:
            missing.append(str(number))
        elif wrong:
            outside.append(f"range: trajectory {number}: state {wrong[0]} of {length} states; expected 1 to {length}")
        valid = states is not None and not wrong
        indices.append(tuple(sorted({state - 1 for state in states or ()})) if valid else None)
    failure = outside[0] if outside else ""
    if missing and not outside:
        kind = "length" if finish == "length" else "missing"
        failure = f"{kind}: no goal states (or the word none) for trajectory {', '.join(missing)}"
    return Goals(tuple(indices), failure)


def _of_json(text: str, count: int) -> dict[int, list[int]]:
    """Map from the number of a trajectory to the numbers of its goal states. Both kinds of numbers begin at 1.

    The result is {} if the text has no JSON object with goal states.
    """
    for value in objects(text):
        entries = value.get("trajectories")
        if isinstance(entries, list):
            said: dict[int, list[int]] = {}
            for place, entry in enumerate(entries, start=1):
                if isinstance(entry, Mapping) and (states := _states(entry)) is not None:
                    number = entry.get("trajectory", place)
                    said[number if isinstance(number, int) else place] = states
            return said
        if count == 1 and (states := _states(value)) is not None:
            return {1: states}
    return {}


def _states(entry: Mapping[str, object]) -> list[int] | None:
    value = next((entry[key] for key in _STATE_KEYS if key in entry), None)
    if value in (-1, "none", [-1]):
        return []
    listed = value if isinstance(value, list) else [value]
    whole = all(isinstance(state, int) and not isinstance(state, bool) for state in listed)
    return [int(str(state)) for state in listed] if whole else None


def _of_lines(text: str, count: int) -> dict[int, list[int]]:
    """Read lines such as `trajectory 1: 4, 7`. Return the same map as `_of_json`.

    Of several lines about one trajectory, the last readable line is used.
    """
    said: dict[int, list[int]] = {}
    for number, rest in _LINE.findall(text):
        states = _listed(rest.strip())
        if states is not None and len(number) < 9:
            said[int(number)] = states
    if not said and count == 1:
        states = _listed(text.strip().split("\n")[-1].strip())
        return {} if states is None else {1: states}
    return said


def _listed(text: str) -> list[int] | None:
    if _NONE.fullmatch(text):
        return []
    if len(text) > 1000 or not _STATES.fullmatch(text):
        return None
    states: list[int] = []
    for first, last in _RANGE.findall(text):
        one, other = int(first), int(last or first)
        # A huge range exceeds any trajectory. Its two ends are enough for `parse_goals` to reject it.
        states += range(one, other + 1) if 0 <= other - one < 10_000 else [one, other]
    return states


Origin = Literal["file", "data", "model"]


@dataclass(frozen=True)
class GoalAnswer:
    """An answer about the goal states of one expert trajectory.

    Attributes:
        digest: digest of the trajectory.
        attempt: number of the answer about this trajectory, from 0. The last valid answer is used.
        origin: "file" (the user's file), "data" (marks in the demonstrations) or "model".
        indices: numbers of the goal states, from 1 (indices in `Goals` begin at 0); () for no goal state; None if the
            answer is invalid.
        failure: one line that says why the answer is invalid; "" otherwise.
        prompt: the prompt as sent to a model; "" for other origins.
        raw: the model's answer as it came.
        tokens_in, tokens_out: number of tokens of the prompt and of the answer.
        seconds: wall time of the call.
    """

    digest: str
    attempt: int
    origin: Origin
    indices: tuple[int, ...] | None
    failure: str = ""
    prompt: str = ""
    raw: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


def last_words(answers: Iterable[GoalAnswer]) -> dict[str, tuple[int, ...]]:
    """Map from trajectory digest to the numbers of the goal states, from 1. The last valid answer is used."""
    return {answer.digest: answer.indices for answer in answers if answer.indices is not None}
