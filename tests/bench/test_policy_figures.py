"""The arithmetic of `make bench-policies`."""

from __future__ import annotations

import pytest

from tests.bench import policy_figures
from tests.bench.figures import Quantiles
from tests.bench.policy_figures import (
    AFTER,
    BEFORE,
    CREATED,
    PATCHED,
    LongestCallback,
    PoliciesRun,
    PolicyStage,
)


def _stage(name, *, start=0.1, longest=0.01, in_force=150):
    times = Quantiles(start, start, start, start)
    return PolicyStage(
        name, 30.0, 150, in_force, times, times, LongestCallback(longest, 0.2, "a task"), 3.0
    )


def _run(*, before=0.1, after=0.1, patched=None, cpu=0.01):
    return PoliciesRun(
        started="now",
        cores=2,
        python="3.11",
        vnode="1",
        pods=300,
        policies=150,
        stages=[
            _stage(BEFORE, start=before, in_force=0),
            _stage(CREATED),
            patched or _stage(PATCHED),
            _stage(AFTER, start=after),
        ],
        changes=policy_figures.changes(10_000, 5_000, 100, [cpu] * 10),
    )


def _missed(run):
    return [aim.text for aim in run.aims if not aim.reached]


def test_a_callback_counts_without_the_collections_that_fell_into_it():
    found = policy_figures.blocks(
        [
            {"seconds": 0.09, "collecting": 0.08, "what": "collected"},
            {"seconds": 0.03, "collecting": 0.0, "what": "worked"},
        ]
    )
    assert (found.longest, found.with_collections, found.what) == (0.03, 0.09, "worked")
    assert policy_figures.blocks([]).longest == 0


def test_all_aims_are_reached_where_nobody_notices_anything():
    assert not _missed(_run())


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (_run(patched=_stage(PATCHED, longest=0.06)), "one policy patched: longest callback, ms"),
        (_run(patched=_stage(PATCHED, start=0.2)), "a bystander's start"),
        (_run(patched=_stage(PATCHED, in_force=149)), "policies in force"),
        (_run(cpu=0.03), "a change of one of many policies"),
    ],
)
def test_each_aim_can_be_missed(run, text):
    [missed] = _missed(run)
    assert text in missed


def test_a_machine_that_slows_down_is_not_taken_for_an_agent_that_does():
    assert not _missed(_run(before=0.1, after=0.3, patched=_stage(PATCHED, start=0.2)))


def test_the_text_names_what_took_longest_and_what_was_missed():
    text = policy_figures.text(_run(cpu=0.03))
    assert "the longest was a task" in text
    assert "MISSED" in text
