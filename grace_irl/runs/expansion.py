"""GRACE's expansion (section 4.2): train a policy on the reward, add its rollouts as negatives, search on.

`rounds/0/run` is the search on the demonstrations alone. `rounds/M` holds `training/`, the new negatives in
`rollouts.parquet`, what looks like an expert's in `alike.parquet`, `run/` where the search went on, and, once it is
complete, `round.json`. Everything is written whole, and the same again if it is done again: so an expansion that was
killed goes on behind the last complete round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from grace_irl.atomic import write_atomically
from grace_irl.demos import load, save
from grace_irl.demos.trajectory import Demonstration, Demonstrations
from grace_irl.errors import GraceError, InputError
from grace_irl.runs import fit as fits
from grace_irl.runs.config import Config, resolve
from grace_irl.runs.folder import require_absent
from grace_irl.runs.learner import Episode, Learner, PpoLearner
from grace_irl.runs.likeness import like_experts
from grace_irl.runs.lock import RunLock
from grace_irl.runs.paths import RunPaths, default_folder
from grace_irl.runs.round import Round, read_round, write_round
from grace_irl.runs.run import Interrupted, Run
from grace_irl.runs.score import score


def is_expansion(folder: Path) -> bool:
    """Whether a folder holds an expansion rather than a run."""
    return (folder / "rounds").is_dir()


def rounds_of(folder: Path) -> tuple[Round, ...]:
    """The rounds that are complete."""
    found: list[Round] = []
    while (done := read_round(_place(folder, len(found)) / "round.json")) is not None:
        found.append(done)
    return tuple(found)


def start(
    config: Config, out: Path | None = None, parts: fits.Parts = fits.Parts(), learner: Learner | None = None
) -> Run:
    """Begins an expansion in a new folder and works on it to its end.

    Args:
        config: as for `fit.start`; `config.expand` says what is expanded and how.
        out: the folder; None: `runs/<name of the set>-<time>`.
        parts: as for `fit.start`.
        learner: in place of PPO on `config.expand.env`.

    Returns:
        The last run of the search, with the rounds, and the folder and reward file of the expansion.

    Raises:
        InputError: settings, data, environment or folder that cannot be used; nothing is written then.
        GraceError, Interrupted: as for `fit.start`.
    """
    folder = out or default_folder(config.data.demos[0] if config.data.demos else "")
    require_absent(folder)
    demonstrations = parts.demonstrations or load(config.data.demos, config.data.negatives)
    learner = learner or _learner(config, parts)
    learner.check(demonstrations)
    with _part_of(folder):
        run = fits.start(config, _place(folder, 0) / "run", parts)
        with RunLock(RunPaths(folder).lock):
            config = resolve(RunPaths(run.folder).config)
            return _Expansion(folder, config, demonstrations, parts, learner).work(run)


def resume(
    folder: Path,
    flags: Mapping[str, object] | None = None,
    *,
    sets: tuple[str, ...] = (),
    parts: fits.Parts = fits.Parts(),
    learner: Learner | None = None,
) -> Run:
    """Goes on with an expansion as if it had never stopped.

    Args:
        folder: of the expansion.
        flags, sets: settings to change, as for `fit.resume`; complete rounds stay as they are.
        parts, learner: as for `start`.

    Raises:
        InputError, GraceError, Interrupted: as for `fit.resume`.
    """
    with RunLock(RunPaths(folder).lock):
        began = resolve(RunPaths(_place(folder, 0) / "run").config)
        config = resolve(sets=sets, flags=flags, base=began)
        if config.expand.model_copy(update={"rounds": 0}) != began.expand.model_copy(update={"rounds": 0}):
            raise InputError(
                f"{folder}: settings of the expansion differ from those that it began with; expected no change but in "
                "the number of rounds: start a new one"
            )
        demonstrations = parts.demonstrations or load(config.data.demos, config.data.negatives)
        learner = learner or _learner(config, parts)
        learner.check(demonstrations)
        work = _Expansion(folder, config, demonstrations, parts, learner)
        done = rounds_of(folder)
        with _part_of(folder):
            if not done:
                return work.work(fits.resume(_place(folder, 0) / "run", flags, sets=sets, parts=parts))
            return work.work(work.again(done[-1]), done)


def _learner(config: Config, parts: fits.Parts) -> Learner:
    note = parts.note or (lambda _: None)
    return PpoLearner(config.expand, config.data.label, allow_weak=config.sandbox.allow_weak, note=note)


@contextmanager
def _part_of(folder: Path) -> Iterator[None]:
    """What ends a part ends the whole, and the whole is what can be resumed."""
    try:
        yield
    except Interrupted as interrupted:
        raise Interrupted(folder, interrupted.best) from None
    except KeyboardInterrupt:
        raise Interrupted(folder, None) from None
    except InputError:
        raise
    except GraceError as error:
        raise type(error)(f"{error} (part of an expansion: go on with {RunPaths(folder).resume})") from error


def _place(folder: Path, number: int) -> Path:
    return folder / "rounds" / str(number)


class _Expansion:
    """An expansion at work."""

    def __init__(
        self, folder: Path, config: Config, demonstrations: Demonstrations, parts: fits.Parts, learner: Learner
    ) -> None:
        self._folder = folder
        self._config = config
        self._demonstrations = demonstrations
        self._parts = parts
        self._learner = learner
        self._note: Callable[[str], None] = parts.note or (lambda _: None)

    def work(self, run: Run, done: Sequence[Round] = ()) -> Run:
        """The rounds that are left.

        Args:
            run: of the last complete round, or of round 0.
            done: the complete rounds.
        """
        rounds = [*done] or [self._keep(run, _of_run(Round(0), self._folder, run))]
        while True:
            last = rounds[-1]
            if last.number and last.rollouts == last.alike:
                return self._ended(run, rounds, f"no rollout of round {last.number} can be told from an expert's")
            if last.number >= self._config.expand.rounds:
                return self._ended(run, rounds, f"finished: {last.number} rounds are done")
            run, this = self._round(replace(last, number=last.number + 1), run)
            rounds.append(self._keep(run, this))

    def _ended(self, run: Run, rounds: Sequence[Round], reason: str) -> Run:
        reward = RunPaths(self._folder).reward
        return replace(run, folder=self._folder, reward_path=reward, reason=reason, rounds=tuple(rounds))

    def again(self, done: Round) -> Run:
        """The run that a complete round ended with, told again from its store."""
        return fits.resume(self._folder / done.run, parts=self._parts_of(int(Path(done.run).parent.name)))

    def _round(self, this: Round, run: Run) -> tuple[Run, Round]:
        """One round: the run whose best program is the reward after it, and what is told of it."""
        settings, place = self._config.expand, _place(self._folder, this.number)
        # A policy that learnt from another reward explores no more: only where the reward was kept does it go on.
        initial = self._folder / this.policy if this.policy and not this.changed else None
        steps, seed = self._steps(this.number), self._seed(this.number, 0)
        policy, steps = self._learner.train(run.reward_path, steps, seed, place / "training", initial)
        episodes = self._learner.play(policy, settings.episodes, self._seed(this.number, 1))
        alike = like_experts(
            run.reward_path, [each.trajectory for each in episodes], self._demonstrations, self._config
        )
        items = self._negative(episodes)
        new = [item for item, same in zip(items, alike, strict=True) if not same]
        self._save(new, place / "rollouts.parquet")
        self._save([item for item, same in zip(items, alike, strict=True) if same], place / "alike.parquet")
        if any(alike):
            self._note(f"round {this.number}: {sum(alike)} of {len(episodes)} rollouts look like an expert's: left out")
        this = _with_outcome(this, episodes)
        accuracy = self._accuracy(run.reward_path, new) if new else None
        this = replace(
            this,
            policy=str(policy.relative_to(self._folder)),
            steps=steps,
            alike=sum(alike),
            new_accuracy=accuracy,
            changed=accuracy is not None and accuracy < settings.enough,
        )
        if this.changed:
            run = self._search(this.number, run)
        return run, _of_run(this, self._folder, run)

    def _steps(self, number: int) -> int:
        """N is shared evenly; what is left goes to the first rounds."""
        each, left = divmod(self._config.expand.steps, self._config.expand.rounds)
        return max(each + (number <= left), 1)

    def _seed(self, number: int, purpose: int) -> int:
        sequence = np.random.SeedSequence((self._config.seed, number, purpose))
        return int(sequence.generate_state(1)[0] >> 1)

    def _negative(self, episodes: Sequence[Episode]) -> list[Demonstration]:
        """The rollouts as negatives, each of the task whose instruction it has."""
        tasks = {item.trajectory.extra_info: item.task for item in reversed(self._demonstrations)}
        other = self._demonstrations.tasks[0]
        trajectories = [each.trajectory for each in episodes]
        return [Demonstration(each, "negative", tasks.get(each.extra_info, other)) for each in trajectories]

    def _accuracy(self, reward: Path, new: Sequence[Demonstration]) -> float:
        """Of a reward, experts against the new negatives."""
        experts = [item for item in self._demonstrations if item.role == "expert"]
        if self._config.data.label == "goal":
            experts = [item for item in experts if item.goals]
        found = score(
            reward,
            replace(self._demonstrations, items=(*experts, *new)),
            rule=self._config.data.label or None,
            workers=self._config.sandbox.workers,
            allow_weak=self._config.sandbox.allow_weak,
        )
        return found.metrics.accuracy

    def _search(self, number: int, before: Run) -> Run:
        """The search with all rollouts so far, from the programs that the last one ended with."""
        folder = _place(self._folder, number) / "run"
        parts = self._parts_of(number)
        if folder.exists():
            return fits.resume(folder, parts=parts)
        data, proposer = self._config.data, self._config.proposer
        named = (*data.negatives, *(str(path.absolute()) for path in self._negatives(number)))
        update = {
            "data": data.model_copy(update={"negatives": named}),
            "proposer": proposer.model_copy(update={"start_from": (str(before.folder.absolute()),)}),
        }
        return fits.start(self._config.model_copy(update=update), folder, parts)

    def _negatives(self, number: int) -> list[Path]:
        """The new negatives of the rounds up to this one."""
        paths = (_place(self._folder, each) / "rollouts.parquet" for each in range(1, number + 1))
        return [path for path in paths if path.exists()]

    def _parts_of(self, number: int) -> fits.Parts:
        """What the run of a round brings along: the demonstrations, with all rollouts so far."""
        if number == 0:
            return self._parts
        new = load([], [str(path) for path in self._negatives(number)])
        together = replace(self._demonstrations, items=(*self._demonstrations, *new))
        return replace(self._parts, demonstrations=together)

    def _save(self, items: Sequence[Demonstration], path: Path) -> None:
        if items:
            save(Demonstrations(self._demonstrations.metadata, tuple(items)), path)

    def _keep(self, run: Run, done: Round) -> Round:
        """The reward as it is now, and the round as complete."""
        write_atomically(RunPaths(self._folder).reward, run.reward_path.read_text(encoding="utf-8"))
        write_round(_place(self._folder, done.number) / "round.json", done)
        return done


def _of_run(this: Round, folder: Path, run: Run) -> Round:
    best = run.best
    return replace(
        this,
        run=str(run.folder.relative_to(folder)),
        program=best.program.id,
        fitness=best.fitness,
        accuracy=best.train.accuracy,
        held_out=best.held_out.accuracy if best.held_out else None,
    )


def _with_outcome(this: Round, episodes: Sequence[Episode]) -> Round:
    """With what the rollouts were worth by the environment's own account."""
    totals = np.array([each.total for each in episodes])
    known = [each.success for each in episodes if each.success is not None]
    names = sorted({name for each in episodes for name in each.components})
    return replace(
        this,
        rollouts=len(episodes),
        mean=float(totals.mean()),
        deviation=float(totals.std()),
        success=float(np.mean(known)) if known else None,
        components={name: float(np.mean([each.components.get(name, 0.0) for each in episodes])) for name in names},
    )
