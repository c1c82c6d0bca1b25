from __future__ import annotations

from vnode.api import kinds


def test_core_kinds_are_below_api():
    assert kinds.PODS.path("ns", "p", "log") == "/api/v1/namespaces/ns/pods/p/log"
    assert kinds.PODS.path() == "/api/v1/pods"
    assert kinds.PODS.api_version == "v1"
    assert kinds.PODS.resource == "pods"


def test_group_kinds_are_below_apis():
    base = "/apis/multicluster.admiralty.io/v1alpha1"
    assert kinds.TARGETS.path("ns") == f"{base}/namespaces/ns/targets"
    assert kinds.TARGETS.api_version == "multicluster.admiralty.io/v1alpha1"
    assert kinds.TARGETS.resource == "targets.multicluster.admiralty.io"


def test_cluster_scoped_kinds_take_no_namespace():
    assert kinds.NODES.path("ignored", "n", "status") == "/api/v1/nodes/n/status"
    assert kinds.CLUSTER_SUMMARIES.path(None, "singleton").endswith("/clustersummaries/singleton")
