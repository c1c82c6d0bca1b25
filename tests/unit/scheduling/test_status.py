from __future__ import annotations

import pytest

from vnode.scheduling import status
from vnode.scheduling.status import SKIP, SUCCESS, Code


def test_success_is_one_object_whoever_says_it() -> None:
    assert SUCCESS.with_plugin("Fit") is SUCCESS


def test_the_first_stamp_stays() -> None:
    outcome = status.unschedulable("full", "far").with_plugin("Fit")
    assert outcome.with_plugin("Other").plugin == "Fit"
    assert outcome.message == "full, far"


@pytest.mark.parametrize(
    ("outcome", "rejected"),
    [
        (SUCCESS, False),
        (SKIP, False),
        (status.error("x"), False),
        (status.wait(), False),
        (status.unschedulable("x"), True),
        (status.unresolvable("x"), True),
    ],
)
def test_a_no_is_not_the_same_as_something_broken(outcome: status.Status, rejected: bool) -> None:
    assert outcome.is_rejected is rejected
    assert outcome.is_success is (outcome.code is Code.SUCCESS)
