"""The report of a run or an expansion, as one self-contained HTML file.

An expansion consists of rounds. Round 0 is a search. Each later round trains a policy on the reward, adds the policy's
rollouts to the negatives and, if necessary, searches again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.audit.warning import Audit
from grace_irl.config import Config
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.separation import Separation
from grace_irl.methods.account import Curves
from grace_irl.methods.registry import method_of
from grace_irl.methods.separated import episode_line, figures_by_episode
from grace_irl.programs.components import names_of
from grace_irl.report import data as datas
from grace_irl.report import plots
from grace_irl.report.account import account
from grace_irl.report.data import Shown, trainings, valued
from grace_irl.report.evidence import EvidencePanel, gather
from grace_irl.report.gallery import Gallery
from grace_irl.report.page import digits, highlighted, render
from grace_irl.report.plots import Plot
from grace_irl.report.verdict import cautions, sentence, warnings
from grace_irl.runs.auditing import stored_audit
from grace_irl.runs.config import flat
from grace_irl.runs.expand.expansion import is_expansion, rounds_of
from grace_irl.runs.expand.round import ROLLOUTS, Round, became
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.front import front_figures, front_of
from grace_irl.runs.record import Record, candidate
from grace_irl.runs.rest import stored_rest
from grace_irl.runs.run import history, is_own, opened
from grace_irl.runs.store import Store

NONE_FOUND, NONE_TRIED = "No valid reward was found.", "No program has been tried yet."
GO_ON = "If the run has ended, go on with it: grace-irl fit --resume RUN, with its folder for RUN."
EVIDENCE = 'id="evidence"'
"""Text of a page with the states that speak for and against the reward."""
UNSHOWN = "States are not all shown: "
"""Text of a page whose run's demonstrations are not at hand."""
GENERATIONS = 200  # maximum number of generations in the report; earlier generations are omitted


@dataclass(frozen=True)
class Expansion:
    """The section of the report about an expansion.

    Attributes:
        rounds: complete rounds.
        plots: learning curves.
        cautions: warnings for the reader.
    """

    rounds: tuple[Round, ...]
    plots: tuple[Plot, ...]
    cautions: tuple[str, ...]

    @property
    def complete(self) -> int:
        """Number of complete rounds, without round 0."""
        return sum(each.number > 0 for each in self.rounds)

    @property
    def digits(self) -> int:
        """Number of decimal places of returns."""
        return digits(max((abs(each.mean) for each in self.rounds if each.mean is not None), default=0.0))


def write_report(
    folder: Path, out: Path | None = None, demonstrations: Shown | None = None, *, keep_states: bool = False
) -> Path:
    """Write the report.

    Args:
        folder: folder of a run or an expansion, complete or still running.
        out: file to write; None: `report.html` in the folder.
        demonstrations: demonstrations whose states the report shows. None: the report reads the files that the run
            names, but only if the same user made the run on this machine.
        keep_states: whether to refuse to replace the folder's report by one that does not show all states, if the
            present one does.

    Returns:
        The path of the file.

    Raises:
        InputError: the folder holds no run, the run is of a newer version, the file cannot be written, or
            `keep_states` forbids it.
        GraceError: the run is damaged.
    """
    path, text = out or RunPaths(folder).report, report(folder, demonstrations)
    if keep_states and out is None and UNSHOWN in text and _shows_states(path):
        raise InputError(
            f"{path}: shows states, and a new report would not show all of them, because their demonstrations are not "
            "at hand; expected --demos to name those whose states it shows, or --out for another file"
        )
    write_atomically(path, text)
    return path


def _shows_states(path: Path) -> bool:
    """Whether there is a report at this path that shows all states of its evidence."""
    page = path.read_text("utf-8", "replace") if path.is_file() else UNSHOWN
    return UNSHOWN not in page and EVIDENCE in page


def report_of_fit(folder: Path, note: Callable[[str], None], demonstrations: Shown | None = None) -> Path | None:
    """Write the report at the end of a fit. A failure of the report does not fail the fit.

    Args:
        folder: folder of the run or the expansion. If the folder contains no run, there is no report.
        note: function that is called with one line about a failure.
        demonstrations: as for `write_report`.

    Returns:
        The path of the file; None if there is no report.
    """
    if not (RunPaths(folder).database.is_file() or (folder / "rounds").is_dir()):
        return None
    try:
        return write_report(folder, demonstrations=demonstrations)
    except Exception as error:
        kind = "" if isinstance(error, GraceError) else f"{type(error).__name__}: "
        said = f"no report ({kind}{error}); try again with: grace-irl report {RunPaths(folder).quoted}"
        note(" ".join(said.split()))
        return None


def report(folder: Path, demonstrations: Shown | None = None) -> str:
    """The HTML text of the report. See `write_report`."""
    if (folder / "compare.toml").is_file():
        jobs = folder / "jobs"
        run = min(jobs.glob("*/fit"), default=jobs / "METHOD-SEED" / "fit")
        raise InputError(
            f"{folder}: a comparison; expected a run, such as {run}: the tables and curves of the comparison are in "
            f"{folder}"
        )
    if not is_expansion(folder):
        return _page(folder, None, demonstrations)
    rounds = rounds_of(folder)
    curves = plots.learning(trainings(folder, rounds))
    expansion = Expansion(rounds, tuple(curves), tuple(cautions(rounds)))
    run = folder / (Path(rounds[-1].reward).parent if rounds else Path("rounds", "0", "run"))
    if not run.is_dir():
        raise InputError(f"{folder}: an expansion without a run yet; expected one that has begun its first search")
    played = [path for each in rounds if (path := folder / "rounds" / str(each.number) / ROLLOUTS).exists()]
    return _page(run, expansion, demonstrations, played)


def _page(folder: Path, expansion: Expansion | None, demonstrations: Shown | None, played: Sequence[Path] = ()) -> str:
    with opened(folder) as (store, config):
        fields, own = names_of(store.meta("fields")), is_own(store, config, folder)
        rows = store.trajectories()
        data = datas.read(config, rows, fields=fields, own=own, given=demonstrations, played=played)
        return _rendered(store, config, data, expansion)


def _rendered(store: Store, config: Config, data: datas.Data, expansion: Expansion | None) -> str:
    records = store.records()
    best = records.get(store.meta("best"))
    evidence = gather(valued(store, best.program.id) if best else [])
    evaluation = best.evaluation if best else None
    separation, chosen = Separation.of(evaluation), method_of(config)
    told = chosen.account
    tried = bool(store.told())
    steps, generations, audit = plots.steps(store), history(store), stored_audit(store)
    return render(
        account=account(store, config, data.metadata.environment if data.metadata else ""),
        best=best,
        told=told,
        separation=separation,
        by_episode=figures_by_episode(separation, "How the reward pays whole episodes") if separation else None,
        episode_line=episode_line(separation.train) if separation else "",
        verdict=told.verdict(evaluation) if evaluation else NONE_FOUND if tried else NONE_TRIED,
        rest=sentence(rest.line) if (rest := stored_rest(store)) else "",
        log_pi=flat(config).get("fitness.log_pi", ""),
        warnings=_warnings(best, separation, evidence, audit) if tried else [GO_ON],
        contrast=audit.contrast.line if audit and audit.contrast else "",
        panels=[
            (panel.title, [plots.curves(part) if isinstance(part, Curves) else part for part in panel.parts])
            for panel in chosen.panels(candidate(best) if best else None, [*map(candidate, records.values())], config)
        ],
        source=highlighted(best.program.source) if best else "",
        evidence=evidence,
        distributions=plots.distributions(evidence),
        curve=plots.rewards,
        gallery=Gallery(data, evidence),
        data=data,
        searches=plots.searches(steps, told),
        generations=generations[-GENERATIONS:],
        earlier=max(len(generations) - GENERATIONS, 0),
        verdicts=plots.verdicts(store),
        failures=plots.failures(store),
        ancestors=plots.ancestors(best, records) if best else [],
        front=front_figures(front) if len(front := front_of(store, records)) > 1 else None,
        requests=store.requests(),
        became=became,
        expansion=expansion,
    )


def _warnings(
    best: Record | None, separation: Separation | None, evidence: EvidencePanel, audit: Audit | None
) -> list[str]:
    if best is None:
        return ["There is no valid program: see below why candidates failed."]
    return [] if separation is None else warnings(separation, evidence, audit)
