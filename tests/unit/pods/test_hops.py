"""What becomes of a pod from cluster to cluster, whatever its user has written on it."""

from __future__ import annotations

import json

import pytest

from tests.permitted import MANIFESTS
from vnode.api import keys, names, objects, route
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.pods import chaperons, delegate

FORGED = {
    keys.PATH: "a,b,c",
    keys.PARENT_CLUSTER_UID: "of-nobody",
    keys.PARENT_NAME: "admin",
    keys.PARENT_NAMESPACE: "kube-system",
    keys.IS_ALLOWED: "true",
    keys.IS_RESERVED: "true",
    keys.SENT: "{}",
    keys.TOKEN: "admin-token",
    keys.TARGET: "kube-system/other",
    keys.OVERRIDDEN: "{}",
    keys.ELECT: "",
}


def pod(name, labels, annotations):
    metadata = {"name": name, "namespace": "shop", "uid": "u", "labels": labels}
    env = [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    spec = {"containers": [{"name": "main", "env": env}], "schedulerName": keys.PROXY_SCHEDULER}
    return {
        "metadata": {**metadata, "annotations": {keys.FORWARD: "", **annotations}},
        "spec": spec,
    }


def hops(proxy):
    """Yield the chaperon that each cluster makes of a pod and its delegates, until one refuses."""
    for number in range(2 * route.LIMIT):
        here = Identity(f"c{number}", f"uid-of-c{number}")
        try:
            made = chaperons.build(
                proxy, here, "t", manifests=MANIFESTS, allowed=False, finalizer=True
            )
        except ConfigError:
            return

        made["metadata"]["uid"] = f"of-{number}"
        yield made
        proxy = delegate.build(made, goes_on=True)
        proxy["metadata"]["uid"] = f"delegate-{number}"
        proxy["spec"]["schedulerName"] = keys.PROXY_SCHEDULER


@pytest.mark.parametrize("name", ["web-0", "w" * 253])
def test_names_labels_and_sizes_stay_within_bounds_through_all_clusters(name):
    labels = {"a." * 100 + "x/" + "y" * 60: "x", "app": "web"}
    chain = list(hops(pod(name, labels, {"note": "n" * 1000})))
    assert len(chain) == route.LIMIT - 1
    for made in chain:
        assert len(objects.name(made)) <= names.LABEL_LIMIT
        assert objects.labels(made).keys() == objects.labels(chain[0]).keys()
        assert len(json.dumps(made)) < len(json.dumps(chain[0])) + 100 * route.LIMIT


def test_no_annotation_of_vnode_that_a_user_writes_goes_with_a_pod():
    forged, plain = (list(hops(pod("web", {}, written))) for written in (FORGED, {}))
    assert forged == plain
    assert objects.annotations(forged[0])[keys.PARENT_NAMESPACE] == "shop"
    assert keys.IS_ALLOWED not in objects.annotations(forged[0])
