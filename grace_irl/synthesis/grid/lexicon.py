"""The cost of every reading of a set's instructions under one plan: what the walks of `learn` go down.

Costs are negative log-probabilities, so a Metropolis walk at temperature 1 visits readings as often as the data makes
them likely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from grace_irl.synthesis.grid.evidence import Columns, Evidence, Stages
from grace_irl.synthesis.grid.meaning import SEVERAL, Plan
from grace_irl.synthesis.grid.parsimony import Parsimony
from grace_irl.synthesis.grid.reading import Reading


class Lexicon:
    """Words and filters, and the cost of putting them together.

    Attributes:
        evidence: the demonstrations.
        plan: how instructions are taken apart.
        words: every word of the instructions, sorted.
        features: what each filter is about.
        where: word -> the scenes whose instruction has it.
    """

    def __init__(self, evidence: Evidence, plan: Plan) -> None:
        self.evidence = evidence
        self.plan = plan
        self.words = sorted({word for scene in evidence.scenes for word in scene.words})
        self.features = [f.feature for f in evidence.filters]
        self.where = {w: [i for i, s in enumerate(evidence.scenes) if w in s.words] for w in self.words}
        self._stages = [plan.stages(scene.words) for scene in evidence.scenes]
        self._spoken = [tuple(dict.fromkeys(scene.words)) for scene in evidence.scenes]
        self._costs: list[dict[tuple[object, ...], float]] = [{} for _ in evidence.scenes]
        self._parsimony = Parsimony(Counter(scene.words for scene in evidence.scenes), self.features)

    @property
    def everywhere(self) -> Sequence[int]:
        """All scenes."""
        return range(len(self._stages))

    def columns(self, reading: Reading, words: Sequence[str], *, described: bool = False) -> Columns:
        """The filters that a step with these words must meet."""
        said = {reading.meanings[word] for word in words if word in reading.meanings}
        if described:  # a neighbour is only described: what happens, and what is always true, is of the thing itself
            return tuple(sorted(said))
        verb = any(self.features[column] == "event" for column in said)
        usual = {c for f, c in reading.constants.items() if not (verb and f == "event")}
        return tuple(sorted(said | usual))

    def stages(self, reading: Reading, scene: int) -> Stages:
        """The filters of every step of a scene's instruction."""
        return tuple(
            tuple(tuple(self.columns(reading, part, described=i > 0) for i, part in enumerate(step)) for step in stage)
            for stage in self._stages[scene]
        )

    def scene_cost(self, reading: Reading, scene: int) -> float:
        """The cost of one scene under a reading, nats."""
        # Walks come by here millions of times: what the scene's words mean is looked up before steps are built.
        key = (reading.always, *map(reading.meanings.get, self._spoken[scene]))
        known = self._costs[scene]
        cost = known.get(key)
        if cost is None:
            cost = known[key] = self.evidence.cost(scene, self.stages(reading, scene))
        return cost

    def price(self, reading: Reading) -> float:
        """The cost of what a reading says, nats."""
        return self._parsimony.price(reading)

    def total(self, reading: Reading) -> float:
        """The cost of a reading, nats."""
        return sum(self.scene_cost(reading, i) for i in self.everywhere) + self.price(reading)

    def neighbours(self, reading: Reading, frozen: str | None = None) -> Iterator[tuple[Reading, Sequence[int]]]:
        """Readings one change away, with the scenes that the change touches. A frozen word (and with it the constants)
        stays as it is."""
        for word in self.words:
            if word != frozen:
                for column in range(-1, len(self.features)):
                    if reading.meanings.get(word, -1) != column:
                        yield reading.with_meaning(word, column), self.where[word]
        if frozen is None:
            for column, feature in enumerate(self.features):
                if self.evidence.filters[column] == SEVERAL:
                    continue
                if reading.constants.get(feature) != column:
                    yield Reading({**reading.constants, feature: column}, reading.meanings), self.everywhere
                elif feature != "event":
                    fewer = {k: v for k, v in reading.constants.items() if k != feature}
                    yield Reading(fewer, reading.meanings), self.everywhere
