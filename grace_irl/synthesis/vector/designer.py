"""A proposer without a model and without demonstrations. It draws and varies designs, which are rewards for steps.

The proposer supports the operators of searches that train a policy on the rewards of each program.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request
from grace_irl.synthesis.vector.components import Component, Components, Floats, Rollout, Shape
from grace_irl.synthesis.vector.design import MOST_TERMS, Design, factors, labels, read, reasoning, source, three, tidy
from grace_irl.synthesis.vector.relevance import relevance

FIRST_TERMS = 4
"""Maximum number of terms of a new design."""
WEIGHTS = (0.1, 3.0)
"""Range of the sizes of new weights. A weight's size is the weighted term's standard deviation over the rollouts."""
SIGMA = 0.7
"""Standard deviation of the logarithm of the random factor by which a change multiplies a weight."""
PAID = 0.75
"""Chance that a term of shape "near" or "within" pays for values near 0 instead of values far from 0."""
STILL = 0.05
"""A term hardly moves in training if the range of its logged values is at most this part of their largest size."""
GUIDED = 0.5
"""Chance that a new term is drawn by its relevance, if the relevance of components is known."""
PATIENCE = 20
"""Number of attempts to find a child that differs from its parents."""
NOTHING = "nothing that a reward may read varies in the rollouts"

Kind = tuple[str, Shape]
T = TypeVar("T")


class Designer:
    """A proposer that draws and varies weighted sums of components, without a model and without demonstrations.

    All scales come from the rollouts, so no unit of a field needs to be known. The order of fields with names does not
    matter. If the designer is `guided`, it prefers components that are relevant to the task's score (`relevance`). The
    sketch of a program is the JSON text of its design. A parent without a sketch counts as a design without terms.

    The answer depends on the operator of the request:

    - "initialise": a new design.
    - "plan": a single term, of a quantity and shape that no parent or ancestor has, or a failure if there is none.
    - "structure": the parent with one term added, removed or replaced.
    - "weights": the parent with other weights of the same signs.
    - "mutate": "structure" or "weights".
    - "reflect": "mutate", but a term that hardly moved along training is dropped first.
    - "crossover": terms of the parents with their weights. If no such combination is new, the weights are new.
    - "path": another step of the kind that led from the nearest ancestor to the parent.
    - "different": a new design that reads no quantity of the parents and ancestors.

    Equal requests with equal parents have equal answers.

    Args:
        rollouts: episodes of random actions. Each is a pair: T+1 states, which are vectors `(T+1, n)` or records, and
            actions `(T,)` or `(T, m)`.
        fields: names of a vector's numbers, or () if unknown.
        seed: seed of the choice of steps from which scales are computed, if the rollouts have too many steps.

    Raises:
        InputError: no rollouts, or states that are neither vectors nor records.
    """

    def __init__(self, rollouts: Sequence[Rollout], fields: Sequence[str] = (), seed: int = 0) -> None:
        self.components = Components(rollouts, fields, seed)
        self.relevance: Mapping[str, float] = {}
        self._steps: Mapping[str, Callable[[np.random.Generator, Sequence[Parent], Sequence[Design]], Design]] = {
            "reflect": self._reflect,
            "mutate": lambda rng, _, designs: self._mutate(rng, designs[0]),
            "structure": lambda rng, _, designs: self._structure(rng, designs[0]),
            "weights": lambda rng, _, designs: self._weights(rng, designs[0]),
            "crossover": lambda rng, _, designs: self._crossover(rng, designs),
            "path": lambda rng, _, designs: self._path(rng, designs),
        }

    def guided(self, rollouts: Sequence[Rollout], scores: Sequence[float]) -> Self:
        """Learn which components are relevant (`relevance`), from whole episodes of random actions and their scores."""
        self.relevance = relevance(self.components, rollouts, scores)
        return self

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """Return one program.

        Raises:
            InputError: the sketch of a parent comes from another version of grace-irl, or from other rollouts.
        """
        start = time.perf_counter()
        rng = np.random.default_rng(request.seed)
        designs = [read(self.components, parent.sketch) for parent in parents]
        if not self.components.listed:
            return Proposal("", failure=NOTHING, seconds=time.perf_counter() - start, exhausted=True)
        design, failure = self._answer(rng, request, parents, designs)
        if failure:
            exhausted = request.operator == "plan"
            return Proposal("", failure=failure, seconds=time.perf_counter() - start, exhausted=exhausted)
        return Proposal(
            source=source(self.components, design),
            reasoning=reasoning(self.components, request.operator, design, designs),
            sketch=json.dumps(design, ensure_ascii=False),
            seconds=time.perf_counter() - start,
        )

    def _answer(
        self, rng: np.random.Generator, request: Request, parents: Sequence[Parent], designs: Sequence[Design]
    ) -> tuple[Design, str]:
        """The answer to a request, or the reason why there is none."""
        operator = request.operator
        if operator == "plan":
            found = self._new(rng, 1, kinds=self._kinds(designs))
            return found, "" if found else "every component is in a program of the pool"
        if operator == "different":
            found = self._new(rng, _count(rng), quantities={name for name, _ in self._kinds(designs)})
            return found, "" if found else "the parent and the others read every quantity"
        if operator != "initialise" and operator not in self._steps:
            return {}, f"the operator {operator!r} needs a model"
        own = designs[: len(request.parents)] or designs[:1]
        first = next((each for each in own if each), {}) if operator == "crossover" else (own or [{}])[0]
        if operator == "initialise" or not first:
            return self._unlike(own, lambda: self._new(rng, _count(rng))), ""
        step = self._steps[operator]
        read = own if operator == "crossover" else designs
        found = self._unlike(own, lambda: step(rng, parents, read))
        if not found and operator == "crossover":
            found = self._unlike(own, lambda: self._weights(rng, self._crossover(rng, own)))
        elif not found:
            found = self._unlike(own, lambda: self._structure(rng, first))
        return found, "" if found else "the rollouts suggest no other term"

    @staticmethod
    def _unlike(parents: Sequence[Design], draw: Callable[[], Design]) -> Design:
        """The first draw that has terms and is no parent; {} after `PATIENCE` draws."""
        return next((found for _ in range(PATIENCE) if (found := tidy(draw())) and found not in parents), {})

    def _new(
        self,
        rng: np.random.Generator,
        count: int,
        *,
        kinds: Collection[Kind] = (),
        quantities: Collection[str] = (),
    ) -> Design:
        """A design of at most `count` terms, without these kinds of components and these quantities."""
        found: Design = {}
        for _ in range(count):
            found |= self._term(rng, {*kinds, *self._kinds([found])}, quantities)
        return tidy(found)

    def _term(self, rng: np.random.Generator, kinds: Collection[Kind], quantities: Collection[str] = ()) -> Design:
        """A new term; {} if no component is left.

        With the chance `GUIDED` it is a relevant component, drawn in proportion to the squared correlation with the
        score. Its weight has the sign of the correlation. Otherwise, all families have equal chances, and so have all
        quantities of a family, all shapes of a quantity and all scales of a shape.
        """
        listed = self.components.listed
        relevant = {
            name: found
            for name, found in self.relevance.items()
            if listed[name].kind not in kinds and listed[name].quantity not in quantities
        }
        if relevant and rng.random() < GUIDED:
            squares = np.square([*relevant.values()])
            name = [*relevant][int(rng.choice(len(squares), p=squares / squares.sum()))]
            return {name: three(math.copysign(_size(rng), relevant[name]))}
        shapes = self.components.shapes
        spent = {name for name, _ in kinds if all((name, shape) in kinds for shape in shapes[name])} | {*quantities}
        left = [[name for name in family if name not in spent] for family in self.components.families.values()]
        if not any(left):
            return {}
        name = _one(rng, _one(rng, [family for family in left if family]))
        return self._weighted(
            rng, _one(rng, _one(rng, [s for shape, s in shapes[name].items() if (name, shape) not in kinds]))
        )

    @staticmethod
    def _weighted(rng: np.random.Generator, component: Component) -> Design:
        """The component with a new weight. The sign is random for "near", "within" and "fall", else positive."""
        size = _size(rng)
        paid = {"near": PAID, "within": PAID, "fall": 0.5}.get(component.shape, 1.0)
        return {component.name: three(size if rng.random() < paid else -size)}

    def _structure(self, rng: np.random.Generator, design: Design, fixed: Collection[str] = ()) -> Design:
        """Add, drop or replace one term, or give it another shape or scale. The terms `fixed` stay."""
        free = [name for name in design if name not in fixed]
        steps = ["add"] if len(design) < MOST_TERMS else []
        steps += ["drop"] if free and len(design) > 1 else []
        steps += ["replace", "reshape"] if free else []
        for step in rng.permutation(steps) if steps else ():
            if found := self._changed(rng, design, str(step), free):
                return found
        return {}

    def _changed(self, rng: np.random.Generator, design: Design, step: str, free: Sequence[str]) -> Design:
        """The design after a step of this name; {} if the step finds no term."""
        if step == "add":
            added = self._term(rng, self._kinds([design]))
            return {**design, **added} if added else {}
        out = str(_one(rng, free))
        rest = {name: weight for name, weight in design.items() if name != out}
        if step == "drop":
            return rest
        if step == "replace":
            added = self._term(rng, self._kinds([design]))
        else:
            taken, quantity = self._kinds([rest]), self.components.listed[out].quantity
            shapes = [
                [each for each in scaled if each.name != out]
                for shape, scaled in self.components.shapes[quantity].items()
                if (quantity, shape) not in taken
            ]
            shapes = [scaled for scaled in shapes if scaled]
            added = self._weighted(rng, _one(rng, _one(rng, shapes))) if shapes else {}
        return {**rest, **added} if added else {}

    @staticmethod
    def _weights(rng: np.random.Generator, design: Design) -> Design:
        return {name: weight * math.exp(SIGMA * rng.standard_normal()) for name, weight in design.items()}

    def _mutate(self, rng: np.random.Generator, design: Design) -> Design:
        return self._structure(rng, design) if rng.random() < 0.5 else self._weights(rng, design)

    def _reflect(self, rng: np.random.Generator, parents: Sequence[Parent], designs: Sequence[Design]) -> Design:
        """Mutate the design. If terms hardly moved during training (`STILL`), first drop the one that moved least."""
        design = designs[0]
        moved = _moves(parents[0].evaluation.evidence.get("components"))
        named = labels(self.components, design)
        still = [name for name in design if moved.get(named[name], math.inf) <= STILL]
        if not still:
            return self._mutate(rng, design)
        out = min(still, key=lambda name: moved[named[name]])
        if len(design) == 1:
            return self._term(rng, self._kinds([design])) or self._mutate(rng, design)
        found = self._mutate(rng, {name: weight for name, weight in design.items() if name != out})
        return {} if out in found else found

    @staticmethod
    def _crossover(rng: np.random.Generator, designs: Sequence[Design]) -> Design:
        """Draw one term of each design, if possible a term that no other design has. Then draw more terms at random."""
        found: Design = {}
        for place in rng.permutation(len(designs)):
            design = designs[place]
            others = {name for k, each in enumerate(designs) if k != place for name in each}
            names = [name for name in design if name not in others] or [*design]
            if names and len(found) < MOST_TERMS:
                name = _one(rng, names)
                found.setdefault(name, design[name])
        rest = [(name, design[name]) for design in designs for name in design]
        for k in rng.permutation(len(rest)):
            name, weight = rest[k]
            if name not in found and len(found) < MOST_TERMS and rng.random() < 0.5:
                found[name] = weight
        return found

    def _path(self, rng: np.random.Generator, designs: Sequence[Design]) -> Design:
        """Repeat the kind of step that led to the parent. `designs`: the parent, then its ancestors, nearest first."""
        design, *above = designs
        if not above:
            return self._structure(rng, design)
        before = above[0]
        stayed = [name for name in design if all(name in each for each in above)]
        found = {name: weight * abs(weight / before.get(name, weight)) for name, weight in design.items()}
        free = [name for name in design if name not in stayed]
        step = "add" if len(design) > len(before) else "drop" if len(design) < len(before) else "replace"
        possible = len(design) < MOST_TERMS if step == "add" else bool(free) and (step != "drop" or len(design) > 1)
        if possible and design.keys() != before.keys():
            return self._changed(rng, found, step, free)
        return found if tidy(found) != design else self._structure(rng, found, stayed)

    def _kinds(self, designs: Sequence[Design]) -> set[Kind]:
        return {self.components.listed[name].kind for design in designs for name in design}

    def rewards(self, sketch: str, states: object, actions: NDArray[np.generic]) -> Floats:
        """The rewards `(T,)` of an episode's steps. Steps with numbers that are not finite are left out."""
        design = read(self.components, sketch)
        steps = self.components.steps([(states, actions)])
        weighted = factors(self.components, design).items()
        parts = [factor * self.components.value(self.components.listed[name], steps) for name, factor in weighted]
        return np.asarray(sum(parts, np.zeros(len(steps.after))))


def _count(rng: np.random.Generator) -> int:
    """The number of terms of a new design."""
    return int(rng.integers(1, FIRST_TERMS + 1))


def _size(rng: np.random.Generator) -> float:
    """The size of a new weight."""
    return math.exp(rng.uniform(math.log(WEIGHTS[0]), math.log(WEIGHTS[1])))


def _one(rng: np.random.Generator, items: Sequence[T]) -> T:
    return items[int(rng.integers(len(items)))]


def _moves(components: object) -> dict[str, float]:
    """For each logged component, the range of its values along training, divided by their largest absolute value."""
    moved: dict[str, float] = {}
    for label, about in components.items() if isinstance(components, Mapping) else ():
        try:
            values = np.asarray(about["values"], dtype=np.float64)
        except (KeyError, TypeError, ValueError):
            continue
        if values.ndim == 1 and len(values) > 1 and np.isfinite(values).all():
            size = float(np.abs(values).max())
            moved[label] = float(np.ptp(values)) / size if size else 0.0
    return moved
