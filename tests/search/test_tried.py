"""The memory of programs by score."""

from __future__ import annotations

import math

import pytest

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.program import Program
from grace_irl.search.protocol import Fate, Request, Result
from grace_irl.search.ranks import Scored
from grace_irl.search.tried import Tried
from tests.search.replies import broken, missing, scored


def test_a_new_valid_program_has_no_fate_yet() -> None:
    tried = Tried()
    taken = tried.take(scored(Request(3, "initialise"), 2.0))
    assert isinstance(taken, Scored)
    assert (taken.program.id, taken.evaluation.score, taken.index) == ("p3", 2.0, 3)
    assert tried.find("p3") is taken
    assert tried.best == ("p3",)


def test_fates_of_the_others() -> None:
    tried = Tried()
    tried.take(scored(Request(0, "initialise"), 2.0))
    tried.take(broken(Request(1, "initialise")))
    assert tried.take(missing(Request(2, "initialise"))) is None
    again = tried.take(scored(Request(3, "initialise"), 5.0, "p0"))
    assert again == Fate("p0", "duplicate", "the same program was tried before")
    worse = tried.take(scored(Request(4, "initialise"), 5.0, "p1"))
    assert worse == Fate("p1", "duplicate", "the same program was tried before")
    stopped = Result(Request(5, ""), Program("p5", "", 1), Evaluation("ok", "stopped early", bound=0.0))
    assert tried.take(stopped) == Fate("p5", "dropped", "stopped early")
    assert tried.best == ("p0",)
    assert tried.order[0].evaluation.score == 2.0  # the first evaluation of a program counts
    assert tried.find("p1") is None


@pytest.mark.parametrize("score", [-math.inf, math.inf, math.nan])
def test_a_score_that_is_no_number_is_invalid(score: float) -> None:
    tried = Tried()
    taken = tried.take(scored(Request(0, "initialise"), score))
    assert isinstance(taken, Fate)
    assert taken.verdict == "invalid"
    assert str(score) in taken.reason
    assert tried.best == ()


def test_ties_go_to_the_smaller_program_then_to_the_earlier_request() -> None:
    tried = Tried()
    for index, (score, size) in enumerate([(0.1 + 0.2, 20), (0.3, 10), (0.3, 10), (0.4, 99), (-1.0, 1)]):
        tried.take(scored(Request(index, "initialise"), score, size=size))
    assert tried.best == ("p3", "p1", "p2", "p0", "p4")


def test_priors_change_no_order() -> None:
    tried = Tried()
    for index, prior in enumerate((-9.0, 0.0)):
        program = Program(f"p{index}", "", 10, prior=prior)
        tried.take(Result(Request(index, ""), program, Evaluation("ok", score=-float(index))))
    assert tried.best == ("p0", "p1")
