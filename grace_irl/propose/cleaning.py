"""GRACE's cleaning: asks in which states of expert trajectories the goal is reached (docs/runs.md, "Goal states")."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from grace_irl.demos.labels import Labelled
from grace_irl.propose.goals import GOALS_SCHEMA, GoalAnswer, parse_goals
from grace_irl.propose.llm import Asking
from grace_irl.propose.prompter import Prompter
from grace_irl.propose.protocol import Prompt

ANSWERS = 3  # to one trajectory, before it is given up


class Cleaner:
    """Asks about each trajectory alone, several at once, and again if an answer cannot be read.

    Args:
        asking: puts the prompts.
        keep: is handed each answer as it comes, good or not: it was paid for.
        in_flight: trajectories that are asked about at once, at most.
    """

    def __init__(self, asking: Asking, keep: Callable[[GoalAnswer], None], in_flight: int) -> None:
        self._asking = asking
        self._keep = keep
        self._slots = asyncio.Semaphore(in_flight)

    async def clean(self, items: Sequence[Labelled], said: Mapping[str, int]) -> dict[str, str]:
        """Asks about trajectories, whatever their split.

        Args:
            items: expert trajectories, all different.
            said: by digest, how many answers there were before.

        Returns:
            By digest why a trajectory still has no goal states, for those that the model gave up on.

        Raises:
            InputError: a prompt that cannot be made short enough, a key that is refused.
            GraceError: nobody answers any more.
        """
        tasks = [asyncio.create_task(self._one(item, said.get(item.trajectory.digest, 0))) for item in items]
        try:
            failures = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._asking.close()
        digests = [item.trajectory.digest for item in items]
        return {digest: failure for digest, failure in zip(digests, failures, strict=True) if failure}

    async def _one(self, item: Labelled, first: int) -> str:
        failure = ""
        async with self._slots:
            for attempt in range(first, first + ANSWERS):
                answer = await self._asked(item, attempt, failure)
                self._keep(answer)
                failure = answer.failure
                if not failure:
                    break
        return failure

    async def _asked(self, item: Labelled, attempt: int, complaint: str) -> GoalAnswer:
        digest, length = item.trajectory.digest, len(item.positive)
        name = f"goals-{digest}" + (f"-again-{attempt}" if attempt else "")

        def write(prompter: Prompter) -> Prompt:
            prompt = prompter.clean(item)
            if not complaint:
                return prompt
            return replace(prompt, user=f"{prompt.user}\n\nAn earlier answer was of no use: {complaint}")

        asked = await self._asking.ask(write, name, 1, GOALS_SCHEMA)
        if not asked.completions:
            return GoalAnswer(digest, attempt, "model", None, asked.failure, asked.prompt.text)
        completion = asked.completions[0]
        goals = parse_goals(completion.text, [length], completion.finish)
        found = goals.indices[0]
        return GoalAnswer(
            digest,
            attempt,
            "model",
            None if found is None else tuple(index + 1 for index in found),
            goals.failure,
            asked.prompt.text,
            completion.text,
            completion.tokens_in,
            completion.tokens_out,
            completion.seconds,
        )
