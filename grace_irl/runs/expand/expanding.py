"""The rounds of an expansion, which alternates between fitting a reward and training a policy.

Round 0 is the first search for a reward. Each later round trains a policy, plays it and judges its rollouts. If the
reward does not separate the rollouts well enough from the experts, the round searches for a better reward. Otherwise,
if learning stalls, the round reshapes the reward: it searches for a version of the reward that rises more steadily
along expert trajectories.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from grace_irl.atomic import write_atomically
from grace_irl.config import Config, DataConfig, ProposerConfig
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Split
from grace_irl.errors import InputError
from grace_irl.evaluate.separation import Metrics
from grace_irl.methods.grace import EvolutionConfig
from grace_irl.programs.parts import shape_of_actions, shaped
from grace_irl.rewards.file import read_reward
from grace_irl.rl.evaluation import Performance, Rollout
from grace_irl.runs import fit as fits
from grace_irl.runs import proposers
from grace_irl.runs.budget import Prices, spending
from grace_irl.runs.caller import Parts
from grace_irl.runs.expand.learner import Learner, Learnt
from grace_irl.runs.expand.likeness import like_experts
from grace_irl.runs.expand.round import ROLLOUTS, Round, ends, favourite, share, write_round
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.run import Run, opened
from grace_irl.runs.sandbox import limits_of
from grace_irl.runs.score import score

LEARNT = 0.5
"""Learning does not stall (`stalls`) if at least this share of rollouts look like an expert's trajectory."""
BEGUN = 0.1
"""Learning does not stall (`stalls`) if at least this share of rollouts look like an expert's trajectory, and the
training return rises (`RISE`)."""
RISE = 1.5
"""Factor for the training return, the mean return of training episodes under the recovered reward (`stalls`).

The training return rises if its last value is at least `RISE` times its first value. If the first value is 0 or
negative, the last value must be at least 0 instead."""


def stalls(paid: Sequence[float | None], alike: int, rollouts: int) -> bool:
    """Whether learning stalls, which means that the policy does not come to behave like the experts.

    The decision does not use the environment's own reward.

    Args:
        paid: mean return of training episodes under the recovered reward, one value per evaluation of the policy. A
            value is None if no episode ended since the previous evaluation.
        alike: number of rollouts that look like an expert's trajectory.
        rollouts: number of all rollouts.
    """
    share = alike / rollouts if rollouts else 0.0
    if share >= LEARNT:
        return False
    known = [value for value in paid if value is not None]
    if share < BEGUN or len(known) < 2:
        return True
    first, last = known[0], known[-1]
    return last < (RISE * first if first > 0 else 0.0)


def place_of(folder: Path, number: int) -> Path:
    """The folder of a round with this number, in the folder of the expansion."""
    return folder / "rounds" / str(number)


class Expanding:
    """The work of an expansion, round by round.

    Args:
        folder: the folder of the expansion.
        config: the settings of the expansion and of its runs.
        demonstrations: the original demonstrations, with their label rule (which states of experts are positive). With
            rule "goal", the goal states that round 0 collected are marked.
        parts: objects and callbacks of the caller.
        learner: the learner of policies.
    """

    def __init__(
        self, folder: Path, config: Config, demonstrations: Demonstrations, parts: Parts, learner: Learner
    ) -> None:
        self._folder = folder
        self._config = config
        self._demonstrations = demonstrations
        self._parts = parts
        self._learner = learner
        self._rule = demonstrations.metadata.label
        self._note: Callable[[str], None] = parts.note or (lambda _: None)

    def work(self, run: Run, done: Sequence[Round] = ()) -> Run:
        """Work on the remaining rounds, and return the result of the expansion.

        Args:
            run: the last run that searched for a reward; the run of round 0 if no round is complete.
            done: the complete rounds, in order.
        """
        rounds = [*done] or [self._keep(self._of_run(Round(0), run))]
        while True:
            last = rounds[-1]
            if last.number and last.rollouts == last.alike:
                return self._ended(run, rounds, f"no rollout of round {last.number} can be told from an expert's")
            if last.number >= self._config.expand.rounds:
                return self._ended(run, rounds, f"finished: {last.number} rounds are done")
            run, this = self._round(replace(last, number=last.number + 1), run, rounds[1:])
            rounds.append(self._keep(this))

    def _ended(self, run: Run, rounds: Sequence[Round], reason: str) -> Run:
        reward, last = RunPaths(self._folder).reward, rounds[-1]
        shaped = bool(last.shaped) and last.reward == last.shaped  # the run in `shaping/` has the reshaped version
        # Only the last reward is tested on the trajectories that a sample left out.
        if shaped or (self._demonstrations.sampled and self._parts.rest):
            number = _number(last.run)
            folder = (self._folder / last.shaped).parent if shaped else run.folder
            parts = replace(self._parts_of(number, folder), rest=self._parts.rest)
            run = fits.resume(folder, parts=parts, vouched=self._vouched(number))
        tokens, cost = self._spent()
        told = replace(run, folder=self._folder, reward_path=reward, reason=reason, rounds=tuple(rounds))
        told = replace(told, tokens=tokens, cost=cost)
        return replace(told, favourite=self._favourite(rounds[1:], reward)) if rounds[1:] else told

    def _favourite(self, rounds: Sequence[Round], reward: Path) -> Round:
        return favourite(rounds, self._folder, reward, self._config, self._rule)

    def again(self, done: Round) -> Run:
        """Read the last run that had searched for a reward when a round was complete (`Round.run`)."""
        number, folder = _number(done.run), self._folder / done.run
        return fits.resume(folder, parts=self._parts_of(number, folder), vouched=self._vouched(number))

    def _round(self, this: Round, run: Run, done: Sequence[Round]) -> tuple[Run, Round]:
        """Work on one round. Return the last run that searched for a reward, and the round's record.

        Args:
            this: the record of the previous round, but with the number of the new round.
            run: the last run that searched for a reward before this round.
            done: the complete rounds without round 0.
        """
        shaped, before = bool(this.shaped), this
        reward = self._folder / this.shaped if shaped else run.reward_path
        learnt = self._train(this, reward, done)
        over = max(learnt.steps - self._steps(this.number, this.over), 0)
        this = replace(this, policy=self._named(learnt.policy), trained_on=self._named(reward))
        this = replace(this, steps=learnt.steps, over=over)
        this = self._played(this, run)
        if this.changed:
            run = self._search(this.number, run)
            this = replace(this, shaped="")
        elif self._rule != "all" and stalls(learnt.paid, this.alike, this.rollouts):
            this = replace(this, stalled=True, shaped=this.shaped or self._reshape(this, run))
        # `taught`: whether the reward after this round is the reshaped version on which the round's policy was trained.
        # Two conditions must hold. First, this round did not search. Second, the version was the reward before this
        # round already, or the share of rollouts that look like an expert's has grown since the previous round.
        taught = shaped and not this.changed and (before.reward == this.trained_on or share(this) > share(before))
        return run, self._of_run(replace(this, reward=this.trained_on if taught else ""), run)

    def _played(self, this: Round, run: Run) -> Round:
        """Play the round's policy, and judge and save its rollouts. Return the updated record.

        The reward of the last search judges the rollouts, even if the policy was trained on a reshaped version.
        """
        place = place_of(self._folder, this.number)
        episodes = self._learner.play(
            self._folder / this.policy, self._config.expand.episodes, self._seed(this.number, 1)
        )
        alike = like_experts(
            run.reward_path, [each.trajectory for each in episodes], self._demonstrations, self._config
        )
        items = self._negative(episodes)
        new = [item for item, same in zip(items, alike, strict=True) if not same]
        self._save(new, place / ROLLOUTS)
        self._save([item for item, same in zip(items, alike, strict=True) if same], place / "alike.parquet")
        if any(alike):
            self._note(f"round {this.number}: {sum(alike)} of {len(episodes)} rollouts look like an expert's: left out")
        told = self._told(run.reward_path, new) if new else None
        enough = self._config.expand.enough
        return replace(
            with_outcome(this, episodes),
            alike=sum(alike),
            new_accuracy=None if told is None else told.accuracy,
            new_fitness=None if told is None else told.fitness,
            changed=told is not None and (told.accuracy < enough or told.fitness < 2 * math.log(enough)),
            stalled=False,
        )

    def _train(self, this: Round, reward: Path, done: Sequence[Round]) -> Learnt:
        """Train the policy of a round.

        If the reward is unchanged, training starts from the last policy. If the reward is new, the learner decides
        whether training starts from an earlier policy or afresh (`Learner.carries`). With label rule "all", the earlier
        policy is the policy with the highest return under the new reward (`favourite`), because a bad reward may have
        spoilt the last policy. With other rules, the earlier policy is the last policy.
        """
        kept = this.trained_on == self._named(reward)
        on = this.policy if kept or self._learner.carries else ""
        if on and not kept and self._rule == "all":
            on = self._favourite(done, reward).policy
        initial = self._folder / on if on else None
        place, seed = place_of(self._folder, this.number), self._seed(this.number, 0)
        steps = self._steps(this.number, this.over)
        return self._learner.train(reward, steps, seed, place / "training", initial)

    def _named(self, path: Path) -> str:
        return str(path.relative_to(self._folder))

    def _steps(self, number: int, over: int) -> int:
        """Number of environment steps to ask for in a round.

        It is the round's share of `config.expand.steps`, without the steps that the round before had too many
        (`Round.over`). So all rounds together are rounded up to whole rollouts once. If a rollout is longer than a
        round, each round has a rollout of its own.
        """
        settings = self._config.expand
        upto = (0, *ends(settings.steps, settings.rounds, settings.growth))
        share = upto[number] - upto[number - 1]
        return share - over if 0 < over < share else max(share, 1)

    def _seed(self, number: int, purpose: int) -> int:
        sequence = np.random.SeedSequence((self._config.seed, number, purpose))
        return int(sequence.generate_state(1)[0] >> 1)

    def _negative(self, episodes: Sequence[Rollout]) -> list[Demonstration]:
        """Turn rollouts into negatives.

        A rollout gets the task of the first demonstration with an equal instruction. If there is none, it gets the
        first task of the demonstrations. Its actions get the shape of the demonstrations' actions.
        """
        tasks = {item.trajectory.extra_info: item.task for item in reversed(self._demonstrations)}
        other = self._demonstrations.tasks[0]
        shape = shape_of_actions(item.trajectory.actions for item in self._demonstrations)
        found = []
        for each in (episode.trajectory for episode in episodes):
            actions = None if each.actions is None else shaped(each.actions, shape)
            played = replace(each, actions=actions)
            found.append(Demonstration(played, "negative", tasks.get(each.extra_info, other)))
        return found

    def _told(self, reward: Path, new: Sequence[Demonstration]) -> Metrics:
        """Compute the metrics of a reward on the experts and the new negatives."""
        experts = [item for item in self._demonstrations if item.role == "expert"]
        if self._rule == "goal":  # experts without a goal state are left out
            experts = [item for item in experts if item.goals]
        return score(
            reward,
            replace(self._demonstrations, items=(*experts, *new)),
            rule=self._rule or None,
            workers=self._config.sandbox.workers,
            allow_weak=self._config.sandbox.allow_weak,
            limits=limits_of(self._config.sandbox),
        ).metrics

    def _search(self, number: int, before: Run) -> Run:
        """Start or resume the search of a round.

        The search uses all negatives so far, and starts from the best programs of the run `before`.
        """
        folder = place_of(self._folder, number) / "run"
        parts = self._parts_of(number, folder)
        config = self._continued(number, before)
        if folder.exists():
            return fits.resume(folder, parts=parts, vouched=config)
        if self._config.proposer.name == "replay":
            who = proposers.settled(config).proposer.name
            self._note(
                f"round {number}: the recording has no answers for new rollouts: the searches continue with {who}"
            )
        return fits.start(config, folder, parts)

    def _vouched(self, number: int) -> Config:
        """The configuration of a round's run, from the expansion's own settings.

        When the run is resumed, this configuration authorises the run's acting settings (`runs.acting`).
        """
        if not number:
            return self._config
        return self._config.model_copy(update={"data": self._data(number), "proposer": self._proposer(())})

    def _data(self, number: int) -> DataConfig:
        """The data settings of a round: the demonstrations, and the new negatives of all rounds up to this one.

        The settings name no file of goal states, because goal states are marked in the demonstrations already.
        """
        data = self._config.data
        named = (*data.negatives, *(str(path.absolute()) for path in self._negatives(number)))
        return data.model_copy(update={"negatives": named, "goals": ""})

    def _proposer(self, start_from: tuple[str, ...]) -> ProposerConfig:
        """The proposer settings of a search after the first one.

        A recording is left out, because it has only the answers for the first search.

        Args:
            start_from: folders of runs. The search starts from their best programs.
        """
        proposer = self._config.proposer.model_copy(update={"start_from": start_from})
        if proposer.name == "replay":
            proposer = proposer.model_copy(update={"name": "", "recording": ""})
        return proposer

    def _continued(self, number: int, before: Run) -> Config:
        """The settings of a search that uses all negatives so far and starts from the best programs of run `before`."""
        proposer = self._proposer((str(before.folder.absolute()),))
        return self._config.model_copy(update={"data": self._data(number), "proposer": proposer})

    def _reshape(self, this: Round, run: Run) -> str:
        """Reshape the run's best program. Return the file of the best version, or "".

        The result is "" if no version rises more steadily, if the program cannot be reshaped, if the settings ask for
        no reshaping, or if this is the last round.
        """
        if not self._config.expand.reshape or this.number >= self._config.expand.rounds:
            return ""
        self._note(
            f"round {this.number}: learning stalls, though the reward tells the rollouts from experts: reshaping it"
        )
        try:
            found = self._reshaped(place_of(self._folder, this.number) / "shaping", _number(this.run), run)
        except InputError as error:
            self._note(f"round {this.number}: not reshaped: {error}")
            return ""
        if found.best.program.id == run.best.program.id:
            self._note(f"round {this.number}: no version of the reward rises more steadily")
            return ""
        return self._named(found.reward_path)

    def _reshaped(self, folder: Path, number: int, run: Run) -> Run:
        """Start or resume, in `folder`, a run that only reshapes the best program of `run`.

        Args:
            folder: folder of the new run.
            number: number of the round of `run`. The new run uses the data of that round.
            run: the run with the program to reshape.
        """
        parts = self._parts_of(number, folder)
        config = self._continued(number, run)
        if folder.exists():
            return fits.resume(folder, parts=parts, vouched=config)
        only = {"population": 1, "generations": 0, "reshape": self._config.expand.reshape}
        search = config.own(EvolutionConfig).model_copy(update=only)
        return fits.start(config.model_copy(update={"search": search}), folder, parts)

    def _negatives(self, number: int) -> list[Path]:
        """Files with the new negatives of all rounds up to this one."""
        paths = (place_of(self._folder, each) / ROLLOUTS for each in range(1, number + 1))
        return [path for path in paths if path.exists()]

    def _spent(self, until: Path | None = None) -> tuple[int, float]:
        """Tokens and cost of all searches, or of those before the one in the folder `until`.

        In a round, `shaping` follows `run`.
        """
        prices = Prices(self._config.model.price_in, self._config.model.price_out)
        tokens, cost, number = 0, 0.0, 0
        while (place := place_of(self._folder, number)).exists():
            for folder in (place / "run", place / "shaping"):
                if folder == until:
                    return tokens, cost
                if RunPaths(folder).database.exists():
                    with opened(folder) as (store, _):
                        found = spending(store, prices)
                    tokens, cost = tokens + found.tokens_in + found.tokens_out, cost + found.cost
            number += 1
        return tokens, cost

    def _parts_of(self, number: int, folder: Path) -> Parts:
        """The caller's parts for the run in a folder, with all new negatives up to this round in the demonstrations.

        A trajectory keeps its split in all rounds, because later searches start from programs of earlier ones.
        """
        paths = [str(path) for path in self._negatives(number)]
        new = load([], paths) if paths else ()
        sides = self._splits(number) if number else {}
        items = (
            replace(each, split=each.split or sides.get(each.trajectory.digest))
            for each in (*self._demonstrations, *new)
        )
        whole = replace(self._demonstrations, items=tuple(items))
        return replace(self._parts, demonstrations=whole, rest=False, spent=self._spent(folder))

    def _splits(self, number: int) -> dict[str, Split]:
        """The split of each trajectory in a round's run, or in the first run before it that has the trajectory."""
        found: dict[str, Split] = {}
        for each in (number, *range(number)):
            folder = place_of(self._folder, each) / "run"
            if RunPaths(folder).database.exists():
                with opened(folder) as (store, _):
                    for row in store.trajectories():
                        found.setdefault(row.digest, row.split)
        return found

    def _save(self, items: Sequence[Demonstration], path: Path) -> None:
        if items:
            save(Demonstrations(self._demonstrations.metadata, tuple(items)), path)

    def _of_run(self, this: Round, run: Run) -> Round:
        """Complete the round's record with facts about `run`, the last run that searched for a reward."""
        best = run.best
        return replace(
            this,
            run=self._named(run.folder),
            reward=this.reward or self._named(run.reward_path),
            program=best.program.id,
            fitness=best.fitness,
            accuracy=best.metrics["accuracy"],
            held_out=best.metrics.get("held_out_accuracy"),
        )

    def _keep(self, done: Round) -> Round:
        """Save the current reward and the record of the complete round. Return the record."""
        write_atomically(RunPaths(self._folder).reward, read_reward(self._folder / done.reward))
        write_round(place_of(self._folder, done.number) / "round.json", done)
        return done


def with_outcome(this: Round, episodes: Sequence[Rollout]) -> Round:
    """Complete the round's record with return, success and components of the environment's own reward."""
    found = Performance.of(episodes).point(this.steps)
    return replace(
        this,
        rollouts=len(episodes),
        mean=found.mean,
        deviation=found.deviation,
        success=found.success,
        components=found.components,
    )


def _number(run: str) -> int:
    """The number of the round that a run belongs to, from the path of the run's folder `rounds/<number>/run`."""
    return int(Path(run).parent.name)
