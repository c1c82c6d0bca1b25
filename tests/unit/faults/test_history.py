"""What the fault harness sees happen is a violation, a suspicion or well, event by event."""

from __future__ import annotations

import pytest

from tests.faults.history import History
from tests.unit.faults.delegated_pods import chaperon, delegate, proxy
from vnode.api import keys
from vnode.api.objects import Object


@pytest.fixture
def parent() -> Object:
    return proxy("db-0", "db", node="virtual")


@pytest.fixture
def history(parent: Object) -> History:
    """Return a history in which the delegate of `parent` runs in c2."""
    seen = History()
    assert seen.on_delegate("c2", None, delegate(chaperon(parent), parent, uid="first")) == []
    return seen


def of_target(target: str) -> Object:
    return {"metadata": {"name": "web-x", "annotations": {keys.TARGET: f"default/{target}"}}}


def test_what_is_made_in_a_cluster_of_another_target_is_a_violation() -> None:
    history = History()
    history.on_chaperon("c2", None, of_target("c2"))
    history.on_chaperon("c2", of_target("c2"), None)
    assert history.violations == []
    history.on_chaperon("c3", None, of_target("c2"))
    assert [violation.rule for violation in history.violations] == [
        "nothing is made in another cluster"
    ]


def test_a_target_that_is_replaced_may_lead_to_the_other_cluster(parent: Object) -> None:
    history = History(replaced={"c2": "c3"})
    history.on_chaperon("c3", None, of_target("c2"))
    assert history.violations == []
    history.on_chaperon("c2", None, of_target("c3"))
    assert history.violations


def test_a_pod_ends_without_us_once_its_target_is_gone(parent: Object) -> None:
    history = History()
    history.on_target_gone(parent)
    assert history.excused == {"uid-db-0": "default/db-0"}


def test_a_second_cluster_that_runs_a_proxy_is_a_violation(
    history: History, parent: Object
) -> None:
    history.on_delegate("c3", None, delegate(chaperon(parent), parent, uid="second"))
    assert [violation.rule for violation in history.violations] == [
        "never two delegates of one proxy"
    ] * 2


def test_a_second_cluster_is_a_violation_though_the_first_has_stopped(
    history: History, parent: Object
) -> None:
    history.on_delegate("c2", delegate(chaperon(parent), parent, uid="first"), None)
    history.on_delegate("c3", None, delegate(chaperon(parent), parent, uid="second"))
    assert len(history.violations) == 1


def test_two_at_once_in_one_cluster_are_a_violation(history: History, parent: Object) -> None:
    history.on_delegate("c2", None, delegate(chaperon(parent), parent, uid="second"))
    assert len(history.violations) == 1


def test_one_that_was_made_anew_after_the_first_has_ended_is_well(
    history: History, parent: Object
) -> None:
    first = delegate(chaperon(parent), parent, uid="first")
    history.on_delegate("c2", first, {**first, "status": {"phase": "Succeeded"}})
    history.on_delegate("c2", None, delegate(chaperon(parent), parent, uid="second"))
    assert history.violations == []
    assert history.delegates == 2


def test_a_namesake_before_its_predecessors_end_is_suspect(
    history: History, parent: Object
) -> None:
    later = {**parent, "metadata": {**parent["metadata"], "uid": "later"}}
    (suspicion,) = history.on_delegate("c3", None, delegate(chaperon(later), later, uid="second"))
    assert history.violations == []
    history.confirm(suspicion)
    assert [violation.rule for violation in history.violations] == [
        "no pod starts before its predecessor has stopped"
    ]


def test_a_namesake_after_its_predecessors_end_is_well(history: History, parent: Object) -> None:
    later = {**parent, "metadata": {**parent["metadata"], "uid": "later"}}
    history.on_delegate("c2", delegate(chaperon(parent), parent, uid="first"), None)
    assert history.on_delegate("c3", None, delegate(chaperon(later), later, uid="second")) == []


def test_a_delegate_that_is_not_bound_does_not_run(parent: Object) -> None:
    history = History()
    waiting = {**delegate(chaperon(parent), parent), "spec": {}}
    assert history.on_delegate("c2", None, waiting) == []
    assert history.delegates == 0


def test_pods_that_taints_end_are_remembered(parent: Object) -> None:
    history = History()
    condition = {"type": "DisruptionTarget", "reason": "DeletionByTaintManager"}
    history.on_proxy({**parent, "status": {"conditions": [condition]}})
    assert history.excused == {"uid-db-0": "default/db-0"}


def test_a_pod_that_is_evicted_from_a_target_that_was_there_is_a_violation(parent: Object) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    evicted = {**parent, "status": {"conditions": [condition]}}
    elsewhere = History(there=frozenset({"another"}))
    elsewhere.on_proxy(evicted)
    assert elsewhere.violations == []
    history = History(there=frozenset({"virtual"}))
    history.on_proxy(evicted)
    history.on_proxy(evicted)  # it changes again
    assert [violation.rule for violation in history.violations] == [
        "a target that is there all the time keeps its pods"
    ]
