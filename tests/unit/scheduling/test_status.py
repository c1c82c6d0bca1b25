from __future__ import annotations

import pytest

from vnode.scheduling import status
from vnode.scheduling.status import SKIP, SUCCESS, Code


def test_success_is_one_object_whoever_says_it() -> None:
    assert SUCCESS.by("Fit") is SUCCESS


def test_the_first_stamp_stays() -> None:
    said = status.unschedulable("full", "far").by("Fit")
    assert said.by("Other").plugin == "Fit"
    assert said.message == "full, far"


@pytest.mark.parametrize(
    ("said", "rejected"),
    [
        (SUCCESS, False),
        (SKIP, False),
        (status.error("x"), False),
        (status.wait(), False),
        (status.unschedulable("x"), True),
        (status.unresolvable("x"), True),
    ],
)
def test_a_no_is_not_the_same_as_something_broken(said: status.Status, rejected: bool) -> None:
    assert said.is_rejected is rejected
    assert said.is_success is (said.code is Code.SUCCESS)
