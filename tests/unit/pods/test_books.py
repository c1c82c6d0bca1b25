"""What the scheduler is told of targets, by their ClusterSummaries."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from vnode.api import keys
from vnode.api.objects import Object
from vnode.kube.store import Store
from vnode.pods import books
from vnode.runtime.links import Links, TargetKey


def summary(free: object) -> dict[str, object]:
    """A ClusterSummary with this word on what is free."""
    return {"metadata": {"annotations": {keys.FREE_RESOURCES: free}}}


def test_what_is_free_is_read_in_all_and_on_the_emptiest_node():
    both = books.read_free(summary('{"sum": {"cpu": "3"}, "largest": {"cpu": "2"}}'))
    assert all(both)
    assert both[0] != both[1]


@pytest.mark.parametrize(
    "said",
    [None, 3, "", "{", "[]", '{"sum": {}}', '{"sum": 1, "largest": 1}', '{"a":' * 10_000],
    ids=["nothing", "number", "empty", "cut", "list", "half", "numbers", "deep"],
)
def test_what_a_target_says_without_sense_is_as_if_it_said_nothing(said: object):
    assert books.read_free(summary(said)) == (None, None)


def virtual_node(target: TargetKey, message: str) -> Object:
    """A node that is not ready, because there is no connection to its target."""
    labels = {keys.TARGET_NAMESPACE: target.namespace, keys.TARGET_NAME: target.name}
    if not target.namespace:
        labels = {keys.CLUSTER_TARGET_NAME: target.name}

    condition = {"type": "Ready", "status": "False", "message": message}
    return {
        "metadata": {"name": target.node_name, "labels": labels},
        "status": {"conditions": [condition]},
    }


def test_of_targets_without_a_connection_a_pod_hears_of_those_of_its_namespace_only() -> None:
    team, other, every = (TargetKey(space, "c2") for space in ("team", "other", ""))
    store = Store()
    for target in (team, other, every):
        store.put(virtual_node(target, f"the Secret of {target} is missing"))

    known = books.Books(SimpleNamespace(store=store), Links(), None, None)  # type: ignore[arg-type]
    assert known.unconnected("team") == {
        team: "the Secret of team/c2 is missing",
        every: "the Secret of c2 is missing",
    }
