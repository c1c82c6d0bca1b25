"""When a random run replaces a target."""

from __future__ import annotations

import random

import pytest

from tests.faults import replacing
from tests.faults.plan import TARGETS, Action, Step, Verb, WantedWorkload, Wish, WorkloadKind

WEB = WantedWorkload("web", WorkloadKind.DEPLOYMENT, 3)
NOTHING = Step((), ())


def drawn(step: Step = NOTHING, wish: Wish | None = None) -> list[replacing.ReplaceAct]:
    wish = wish or Wish({"web": WEB})
    found = [replacing.draw(random.Random(seed), step, wish) for seed in range(50)]
    return [act for act in found if act is not None]


def test_either_target_is_replaced_by_the_other_now_and_then() -> None:
    acts = drawn()
    assert 5 < len(acts) < 30
    assert {(act.target, act.other) for act in acts} == {TARGETS, TARGETS[::-1]}
    assert {act.lost for act in acts} == {True, False}


@pytest.mark.parametrize(
    ("step", "wish"),
    [
        (Step((Action(Verb.EDIT_TARGET, 1.0, target="c2"),), ()), None),
        (
            Step(
                (
                    Action(
                        Verb.ANNOTATE_DELEGATE, 1.0, WantedWorkload("p", WorkloadKind.POD, on="c3")
                    ),
                ),
                (),
            ),
            None,
        ),
        (NOTHING, Wish({"web": WantedWorkload("web", WorkloadKind.DEPLOYMENT, 3, on="c2")})),
    ],
)
def test_none_is_where_it_would_be_in_the_way(step: Step, wish: Wish | None) -> None:
    assert drawn(step, wish) == []
