"""What goes on with a delegate that is sent to a further cluster, and where none is sent."""

from __future__ import annotations

import pytest

from tests.permitted import MANIFESTS
from tests.unit.pods.proxy_pods import PARENT, SPREAD, build, proxy, source_with
from vnode.api import keys, objects
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.pods import chaperons


def sent_here(**fields):
    """Return a proxy that is itself a delegate, of cluster c0, and may travel on."""
    annotations = {keys.FORWARD: "", keys.PARENT_CLUSTER_UID: "uid-of-c0", keys.IS_ALLOWED: "true"}
    pod = proxy(annotations={**annotations, **fields.pop("annotations", {})}, **fields)
    pod["metadata"]["ownerReferences"] = [{"kind": "PodChaperon", "uid": "c", "controller": True}]
    return pod


def test_a_pod_that_may_travel_says_so_to_the_target_with_what_the_next_one_needs():
    asks = {keys.FORWARD: "", keys.NO_PREFIX_LABEL_REGEXP: "^app="}
    annotations = objects.annotations(build(proxy(annotations=asks)))
    assert {key: annotations[key] for key in asks} == asks
    assert keys.PATH not in annotations
    asks.pop(keys.FORWARD)
    assert not asks.keys() & objects.annotations(build(proxy(annotations=asks))).keys()


def test_a_pod_of_this_cluster_cannot_make_up_a_way():
    annotations = objects.annotations(build(proxy(annotations={keys.PATH: "x,y"})))
    assert keys.PATH not in annotations


def test_a_delegate_that_is_sent_on_has_this_cluster_as_its_parent_and_its_way_with_it():
    pod = sent_here()
    pod["metadata"]["labels"] = {
        keys.PREFIX + "app": "web",
        keys.PARENT_UID: "u0",
        keys.PARENT_CLUSTER_NAME: "c0",
        keys.HAS_FINALIZER: "true",
    }
    built = build(pod, target_uid="uid-of-c2")
    assert objects.labels(built) == {
        keys.PREFIX + "app": "web",
        keys.PARENT_UID: "u1",
        **PARENT.labels,
    }
    annotations = objects.annotations(built)
    assert annotations[keys.PATH] == "uid-of-c0,uid-of-c1"
    assert annotations[keys.PARENT_CLUSTER_UID] == "uid-of-c1"
    assert keys.IS_ALLOWED not in annotations


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (sent_here(schedulerName="mine"), "vnode did not choose"),
        (sent_here(annotations={keys.PATH: "uid-of-c1"}), "in this cluster before"),
        (sent_here(annotations={keys.PATH: "uid-of-c2"}), "came through that cluster"),
    ],
)
def test_a_delegate_is_not_sent_where_it_has_been_nor_by_others(pod, words):
    with pytest.raises(ConfigError, match=words):
        build(pod, target_uid="uid-of-c2")


def test_what_is_sent_on_has_the_middle_for_its_source():
    first = build(proxy(source_with(topologySpreadConstraints=[SPREAD])))
    assert objects.labels(first)[keys.PARENT_CLUSTER_UID] == PARENT.uid
    going_on = source_with(**first["spec"])
    going_on["metadata"]["labels"] = objects.labels(first)
    middle = Identity("c2", "uid-of-c2")
    second = chaperons.build(
        *(proxy(going_on), middle, "default/c3"), manifests=MANIFESTS, allowed=True, finalizer=True
    )
    assert objects.labels(second) == {
        keys.PREFIX + "app": "web",
        keys.PARENT_UID: "u1",
        **middle.labels,
    }
    (spread,) = second["spec"]["topologySpreadConstraints"]
    wanted = {keys.PREFIX + "app": "web", keys.PARENT_CLUSTER_NAME: "c2"}
    assert spread["labelSelector"]["matchLabels"] == wanted
