"""Questions to a language model about the goal states of expert trajectories, before a search begins.

In a goal state the task is done. GRACE calls this step cleaning (docs/runs.md, "Goal states").
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from grace_irl.demos.labels import Labelled
from grace_irl.propose.goals import GOALS_SCHEMA, GoalAnswer, parse_goals
from grace_irl.propose.llm import Asking
from grace_irl.propose.prompter import Prompter
from grace_irl.propose.protocol import Prompt

ANSWERS = 3  # maximum number of new answers about one trajectory in a call of `Cleaner.clean`


class Cleaner:
    """A client that asks a model for the goal states of trajectories, several trajectories in parallel.

    If an answer is invalid, the client asks again, and the new prompt gives the reason.

    Args:
        asking: access to the model.
        keep: callback that stores each answer, valid or not, as soon as it arrives.
        in_flight: maximum number of trajectories in parallel.
    """

    def __init__(self, asking: Asking, keep: Callable[[GoalAnswer], None], in_flight: int) -> None:
        self._asking = asking
        self._keep = keep
        self._slots = asyncio.Semaphore(in_flight)

    async def clean(self, items: Sequence[Labelled], said: Mapping[str, int]) -> dict[str, str]:
        """Ask for the goal states of expert trajectories of any split.

        Args:
            items: the trajectories, all different.
            said: number of stored answers by trajectory digest. This number is the index of the next answer.

        Returns:
            The last failure by trajectory digest, for the trajectories that still have no goal states.

        Raises:
            InputError: a prompt cannot be made short enough, or the server refuses the key.
            GraceError: the server is gone.
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
