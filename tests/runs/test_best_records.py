"""The order of a run's programs, for exports and for searches that begin with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.program import Program
from grace_irl.runs.record import Record
from grace_irl.runs.run import best_records
from grace_irl.runs.store import Store
from grace_irl.search.protocol import Fate


def test_the_best_program_comes_first_and_none_that_was_refused() -> None:
    evaluations = {
        "a": Evaluation("ok", score=0.1),
        "b": Evaluation("ok", score=0.9),
        "c": Evaluation("ok", score=0.5),
        "d": Evaluation("runtime", "it fails"),
        "e": Evaluation("ok", score=1.0),  # strict mode refuses it at the end
        "f": Evaluation("ok", score=2.0, bound=2.0),
    }
    records = {
        name: Record(Program(name, "", 1), evaluation, place)
        for place, (name, evaluation) in enumerate(evaluations.items())
    }
    fates: list[Any] = [
        SimpleNamespace(fate=Fate("e", "invalid", "it differs")),
        SimpleNamespace(fate=Fate("c", "dropped", "")),
    ]
    store = SimpleNamespace(meta=lambda key: "c" if key == "best" else "", records=lambda: records, fates=lambda: fates)
    assert [each.program.id for each in best_records(cast(Store, store))] == ["c", "b", "a"]
