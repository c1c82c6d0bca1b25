"""Scores of clusters are read from two kinds, and each that does not count says why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import cluster_scores
from vnode.api.cluster_scores import TargetScores
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def add_on(*scores: object, **status: object) -> Object:
    metadata = {"name": "usage", "namespace": "berlin"}
    return {"metadata": metadata, "status": {"scores": list(scores), **status}}


def own(name: str, value: object, created: str = "", **spec: object) -> Object:
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {
            "target": {"name": "berlin"},
            "scores": [{"name": "price", "value": value}],
            **spec,
        },
    }


def of_add_on(obj: Object) -> TargetScores:
    return TargetScores("berlin", {"usage": cluster_scores.read_add_on(obj)})


def of_own(*found: Object) -> TargetScores:
    listed = cluster_scores.oldest_first(found)
    return TargetScores(own=tuple(cluster_scores.read_own(obj)[1] for obj in listed))


def test_a_value_within_the_range_counts_until_it_ends() -> None:
    scores = of_add_on(
        add_on({"name": "gpu", "value": -70}, validUntil="2026-01-01T13:00:00+01:00")
    )
    before = scores.of_add_on("usage", "gpu", NOW - timedelta(seconds=1))
    assert (before.value, before.until) == (-70, NOW)
    ended = scores.of_add_on("usage", "gpu", NOW)
    assert ended.value is None
    assert ended.reason == "ScoreExpired"
    assert ended.why == (
        "score gpu of addonplacementscore/berlin/usage expired at 2026-01-01T12:00:00Z"
    )
    assert of_add_on(add_on({"name": "gpu", "value": 100})).of_add_on("usage", "gpu", NOW).value


@pytest.mark.parametrize("value", [101, -101, 1.5, "20", True, None, [3], 10**30])
def test_a_value_out_of_range_does_not_count_and_says_so(value: object) -> None:
    found = of_add_on(add_on({"name": "gpu", "value": value})).of_add_on("usage", "gpu", NOW)
    assert found.value is None
    assert "is no integer from -100 to 100" in found.why
    assert found.reason == "ScoreInvalid"


@pytest.mark.parametrize("end", ["soon", "2026-01-01", "2026-01-01T12:00:00", 17, {}])
def test_an_end_that_is_no_time_spoils_all_scores(end: object) -> None:
    scores = of_add_on(add_on({"name": "gpu", "value": 1}, validUntil=end))
    assert "validUntil is no time" in scores.of_add_on("usage", "gpu", NOW).why


def test_what_is_missing_is_told_apart() -> None:
    scores = of_add_on(add_on({"name": "gpu", "value": 1}))
    assert scores.of_add_on("usage", "tpu", NOW).why == (
        "score tpu is missing: addonplacementscore/berlin/usage has none of that name"
    )
    assert scores.of_add_on("other", "tpu", NOW).why == (
        "score tpu is missing: there is no AddOnPlacementScore other in namespace berlin"
    )
    assert of_own().of_own("price", NOW).why == (
        "score price is missing: no ClusterScore has it for this target"
    )
    unknown = TargetScores(no_add_ons="not served", no_own="forbidden")
    assert unknown.of_add_on("usage", "gpu", NOW).why == "score gpu is not known: not served"
    assert unknown.of_own("price", NOW).reason == "ScoresUnknown"


def test_of_several_cluster_scores_the_oldest_that_holds_counts() -> None:
    first, last = "2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z"
    assert of_own(own("a", 5, last), own("b", 7, first)).of_own("price", NOW).value == 7
    ended = own("b", 7, first, validUntil="2025-12-31T00:00:00Z")
    assert of_own(own("a", 5, last), ended).of_own("price", NOW).value == 5
    assert of_own(own("a", 500, last), ended).of_own("price", NOW).reason == "ScoreExpired"


def test_a_cluster_score_names_its_target() -> None:
    assert cluster_scores.read_own(own("a", 5))[0] == TargetKey("", "berlin")
    named = own("a", 5, target={"namespace": "team-a", "name": "gpu"})
    assert cluster_scores.read_own(named)[0] == TargetKey("team-a", "gpu")
    for target in (None, "berlin", {}, {"name": 3}, {"name": "x", "namespace": 3}):
        assert cluster_scores.read_own(own("a", 5, target=target))[0] is None


def test_of_a_long_list_the_first_scores_are_read() -> None:
    many = [{"name": str(n), "value": 1} for n in range(cluster_scores.MOST + 1)]
    scores = of_add_on(add_on(*many))
    assert scores.of_add_on("usage", "0", NOW).value == 1
    assert scores.of_add_on("usage", str(cluster_scores.MOST), NOW).value is None


@given(ANYTHING, ANYTHING)
def test_nothing_that_is_written_there_is_an_error(scores: Any, until: Any) -> None:
    said = {"scores": scores, "validUntil": until}
    names = (
        [e.get("name") for e in scores if isinstance(e, dict)] if isinstance(scores, list) else []
    )
    for found in (
        of_add_on({"metadata": {"name": "usage", "namespace": "berlin"}, "status": said}),
        of_own({"metadata": {}, "spec": said}),
    ):
        for name in ("x", *(name for name in names if isinstance(name, str))):
            for value in (found.of_add_on("usage", name, NOW), found.of_own(name, NOW)):
                assert (value.value is None) is bool(value.why)
                assert value.value is None or -100 <= value.value <= 100
