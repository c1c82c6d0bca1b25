"""What is left to do until a Target is another cluster, and when nothing may be done."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api.errors import ConfigError
from vnode.cli.replace.former import ClusterAnswer
from vnode.cli.replace.steps import ReplacementState, ReplacementStep, decide, leaves_former

DRAIN, CLEAN_UP, SWITCH, AWAIT, UNCORDON, OWNERS, END = ReplacementStep
OLD, NEW, THIRD, OWN = "old", "new", "third", "own"
SILENT = ClusterAnswer(False, why="connection refused")


def state(leads_to: ClusterAnswer | str = OLD, **more: Any) -> ReplacementState:
    answer = ClusterAnswer(True, leads_to) if isinstance(leads_to, str) else leads_to
    given_: dict[str, Any] = {
        "target": "target/gpu",
        "recorded": OLD,
        "wanted": NEW,
        "own": OWN,
        "leads_to": answer,
        "bound": 3,
        "lost": False,
        **more,
    }
    return ReplacementState(**given_)


@pytest.mark.parametrize(
    ("now", "steps"),
    [
        (state(), (DRAIN, CLEAN_UP, SWITCH, AWAIT, UNCORDON, END)),
        (state(bound=0), (DRAIN, CLEAN_UP, SWITCH, AWAIT, UNCORDON, END)),
        (state(NEW, bound=0), (DRAIN, SWITCH, AWAIT, UNCORDON, END)),
        (state(SILENT, bound=0), (DRAIN, SWITCH, AWAIT, UNCORDON, END)),
        (state(SILENT, lost=True), (SWITCH, AWAIT, UNCORDON, OWNERS)),
        (state(NEW, lost=True), (SWITCH, AWAIT, UNCORDON, OWNERS)),
        (state(NEW, recorded=NEW), (SWITCH, AWAIT, UNCORDON, OWNERS, END)),
        (state(SILENT, recorded=""), (SWITCH, AWAIT, UNCORDON, OWNERS, END)),
    ],
)
def test_what_is_left_follows_from_what_is_there(
    now: ReplacementState, steps: tuple[ReplacementStep, ...]
) -> None:
    assert decide(now) == steps


@pytest.mark.parametrize(
    ("now", "cure"),
    [
        (state(wanted=""), "--target.*may get its namespace kube-system"),
        (state(wanted=OWN), "source itself: pass the kubeconfig"),
        (state(lost=True), "leave --lost out"),
        (state(ClusterAnswer(True, "", "it does not tell"), lost=True), "leave --lost out"),
        (state(THIRD, lost=True), "leave --lost out"),
        (state(SILENT), r"\(connection refused\), so its 3 pods.*pass --lost"),
        (state(NEW), r"another cluster already \(new\).*back into the Secret.*pass --lost"),
        (state(THIRD), r"another cluster already \(third\).*pass --lost"),
    ],
)
def test_what_would_do_harm_is_refused_with_the_cure(now: ReplacementState, cure: str) -> None:
    with pytest.raises(ConfigError, match=cure):
        decide(now)


@given(
    recorded=st.sampled_from(["", OLD, NEW]),
    answer=st.sampled_from([SILENT, *(ClusterAnswer(True, uid) for uid in ("", OLD, NEW, THIRD))]),
    bound=st.integers(0, 2),
    lost=st.booleans(),
)
def test_a_cluster_that_may_run_pods_is_never_left_before_they_have_ended(
    recorded: str, answer: ClusterAnswer, bound: int, lost: bool
) -> None:
    now = state(answer, recorded=recorded, bound=bound, lost=lost)
    try:
        steps = decide(now)
    except ConfigError:
        return

    assert steps.index(SWITCH) < steps.index(AWAIT) < steps.index(UNCORDON)
    if now.former not in ("", NEW) and not lost:
        assert steps[0] is DRAIN
        assert answer.uid == now.former or not bound

    if now.former not in ("", NEW) and lost:
        assert answer.uid == NEW or not answer.answers
        assert DRAIN not in steps


@pytest.mark.parametrize(
    ("now", "left"),
    [
        (state(), False),
        (state(SILENT, bound=0), True),
        (state(NEW, bound=0), False),
        (state(SILENT, lost=True), True),
        (state(NEW, lost=True), True),
        (state(SILENT, recorded=NEW, lost=True), False),
        (state(SILENT, recorded=""), False),
    ],
)
def test_what_could_not_be_cleaned_up_is_said(now: ReplacementState, left: bool) -> None:
    assert leaves_former(now) is left
