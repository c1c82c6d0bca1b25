"""Indexes are compared with what a kubelet would give the containers, and each completes once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults import jobs
from tests.faults.jobs import INDEX, JOB, VARIABLE, Indexes
from tests.faults.snapshot import REPLACES_FAILED
from vnode.api import keys
from vnode.api.objects import Object

LABEL = "batch.kubernetes.io/job-completion-index"
RENAMED = "multicluster.admiralty.io/job-completion-index"


def proxy(index: int, *, uid: str = "", once: bool = True) -> Object:
    annotations = {INDEX: str(index)} | ({REPLACES_FAILED: "true"} if once else {})
    owner = {"controller": True, "uid": "uid-of-job"}
    metadata = {
        "uid": uid or f"uid-{index}",
        "labels": {JOB: "work"},
        "annotations": annotations,
        "ownerReferences": [owner],
    }
    return {"metadata": metadata}


def delegate(parent: str, *, phase: str = "Running", **variable: Any) -> Object:
    env = {"name": VARIABLE, **(variable or {"value": "0"})}
    return {
        "metadata": {"labels": {keys.PARENT_UID: parent, RENAMED: "0"}},
        "spec": {"nodeName": "c2-node-0", "containers": [{"name": "main", "env": [env]}]},
        "status": {"phase": phase},
    }


def reading(path: str) -> dict[str, Any]:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("variable", "known"),
    [
        ({"value": "0"}, "0"),
        ({"value": "1"}, "1"),
        (reading(f"metadata.labels['{RENAMED}']"), "0"),
        (reading(f"metadata.labels['{LABEL}']"), ""),
        (reading(f"metadata.annotations['{INDEX}']"), ""),
        (reading("metadata.name"), None),
    ],
)
def test_a_variable_has_the_value_that_a_kubelet_gives_it(
    variable: dict[str, Any], known: str | None
) -> None:
    assert jobs.index(delegate("uid-0", **variable)) == known


@pytest.mark.parametrize("proxy_first", [True, False])
@pytest.mark.parametrize(("index", "wrong"), [(0, 0), (1, 1)])
def test_a_delegate_with_another_index_than_its_proxy_is_a_violation(
    proxy_first: bool, index: int, wrong: int
) -> None:
    seen, parent = Indexes(), proxy(index)
    if proxy_first:
        seen.on_proxy(parent)

    seen.on_delegate(delegate(f"uid-{index}"))
    seen.on_proxy(parent)
    assert len(seen.violations) == wrong
    assert seen.checked == 1


def test_a_delegate_is_looked_at_when_it_is_bound() -> None:
    seen = Indexes()
    seen.on_proxy(proxy(1))
    seen.on_delegate({**delegate("uid-1"), "spec": {}})
    assert (seen.checked, seen.violations) == (0, [])


def test_pods_of_other_jobs_have_no_index() -> None:
    seen = Indexes()
    plain = delegate("uid-0")
    plain["spec"]["containers"][0]["env"] = []
    seen.on_proxy({"metadata": {"uid": "uid-0"}})
    seen.on_delegate({**plain, "status": {"phase": "Succeeded"}})
    assert (seen.checked, seen.violations) == (0, [])


@pytest.mark.parametrize(
    ("once", "forced", "wrong"), [(True, False, 1), (False, False, 0), (True, True, 0)]
)
def test_an_index_that_two_pods_complete_is_a_violation(
    once: bool, forced: bool, wrong: int
) -> None:
    seen = Indexes()
    for uid in ("first", "second"):
        seen.on_proxy(proxy(0, uid=uid, once=once))

    done = delegate("first", phase="Succeeded")
    seen.on_delegate(done, forced=forced)
    seen.on_delegate(done)  # changed once more
    assert seen.violations == []
    seen.on_delegate(delegate("second", phase="Succeeded"))
    assert len(seen.violations) == wrong
