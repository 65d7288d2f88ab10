"""One sitting of a run: from opened parts to what the run found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.config import Config
from grace_irl.errors import GraceError
from grace_irl.evaluate.evaluation import Evaluator
from grace_irl.methods.registry import method
from grace_irl.propose.goals import GoalAnswer
from grace_irl.propose.material import Workbench
from grace_irl.propose.protocol import Proposer
from grace_irl.runs.budget import Prices, budget
from grace_irl.runs.engine import Engine, Snapshot, run_to_end
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.provenance import export_record
from grace_irl.runs.record import Record
from grace_irl.runs.run import Best, Interrupted, Run
from grace_irl.runs.store import Store

FRUITLESS_POPULATIONS = 2  # a run ends after this many populations of answers in a row that are no program


@dataclass(frozen=True)
class Session:
    """Everything that the engine needs, opened and checked.

    Attributes:
        folder: of the run.
        evaluator: opens the method's evaluator.
        again: what to add to the command to go on with the run, or with what it is a part of.
    """

    folder: Path
    config: Config
    bench: Workbench
    evaluator: Callable[[Workbench], Evaluator]
    proposer: Proposer
    store: Store
    again: str
    listener: Callable[[Snapshot], None] | None = None

    def work(self) -> Run:
        """Searches to the end.

        Raises:
            GraceError: no valid program was found, or the search cannot go on; all results are saved.
            Interrupted: by Ctrl-C; the run is saved.
        """
        config = self.config
        chosen, stop = method(config.method), config.stop
        evaluator, course = self.evaluator(self.bench), chosen.course(config)
        engine = Engine(
            search=chosen.search(config),
            proposer=self.proposer,
            evaluator=evaluator,
            sandbox=self.bench.sandbox,
            store=self.store,
            budget=budget(
                max_calls=stop.max_calls,
                max_seconds=stop.max_seconds,
                max_tokens=stop.max_tokens,
                max_cost=stop.max_cost,
                target_accuracy=stop.target_accuracy,
                plateau=stop.plateau,
                fruitless=FRUITLESS_POPULATIONS * chosen.width(config),
            ),
            lag=config.search.lag or 1,
            account=chosen.account,
            following=chosen.following(config),
            prices=Prices(config.model.price_in, config.model.price_out),
            spent=_spent(self.store.goals()),
            generations=course.generations if course else None,
            on_change=self.listener or (lambda _: None),
            on_best=self._keep,
        )
        try:
            reason = run_to_end(engine.run())
            best = engine.finish()
        except KeyboardInterrupt:
            found = engine.interrupt()
            self.store.add_event("interrupted", f"after {engine.progress.calls} proposals")
            best_so_far = Best(found.program, found.evaluation) if found else None
            raise Interrupted(self.folder, best_so_far) from None
        except GraceError as error:
            self.store.add_event("failed", str(error))
            raise type(error)(f"{error}; what was done is saved: go on with {self.again}") from error
        finally:
            evaluator.close()
        self.store.add_event("stopped", reason)
        if best is None:
            raise GraceError(self._nothing(engine.progress.calls, reason))
        return Run(
            folder=self.folder,
            best=Best(best.program, best.evaluation),
            reward_path=RunPaths(self.folder).reward,
            reason=reason,
            seconds=engine.progress.seconds,
            programs=len(engine.records),
            calls=engine.progress.calls,
            generations=engine.progress.generation,
            tokens=engine.progress.tokens,
            cost=engine.progress.cost,
            proposer=config.proposer.name,
            method=config.method,
        )

    def _nothing(self, calls: int, reason: str) -> str:
        """The reason why there is no program, and what to do."""
        if calls:
            why = f"no valid program in {calls} proposals ({reason})"
            return f"{self.folder}: {why}; see why with: grace-irl show {self.folder}"
        return (
            f"{self.folder}: the time was up before the first proposal ({reason}); expected time to read the "
            f"demonstrations, or for an answer: go on with more: grace-irl fit {RunPaths(self.folder).resume} "
            "--max-seconds N"
        )

    def _keep(self, best: Record) -> None:
        """Writes the best program so far."""
        write_atomically(RunPaths(self.folder).reward, export_record(best, self.store, self.config))
        self.store.set_meta("best", best.program.id)


def _spent(answers: Sequence[GoalAnswer]) -> tuple[int, int]:
    """Tokens in and out of the calls before the search."""
    return sum(answer.tokens_in for answer in answers), sum(answer.tokens_out for answer in answers)
