"""A fleet with metrics servers: c1 sends pods to c2 and c3.

By itself, because metrics-server looks every ten seconds, so that waiting for it takes long. In c2
the source may read the metrics of pods in its namespace and of nodes; in c3 it may read kubelets,
and there is no metrics API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.clients import c1, source
from tests.fleets import clusters
from tests.kit import Fleet
from vnode.api.objects import Object

__all__ = ["c1", "fleet", "source"]

_AUTOSCALER = (
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
)
_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield three clusters, connected in namespace default; c1 may read its targets' usage."""
    words = ["c1", "c2", "c3", "--nodes", "2", "--agents", "--metrics-server"]
    words += [f"--controller-manager-arg={flag}" for flag in _AUTOSCALER]
    with clusters(tmp_path_factory, *words, "--connect", "c1:c2", "--connect", "c1:c3") as fleet:
        yield _prepared(fleet)


def _prepared(fleet: Fleet) -> Fleet:
    fleet.opt_in("c1")
    fleet.kubectl("c3", "delete", "apiservice", "v1beta1.metrics.k8s.io", "--ignore-not-found")
    _allow(fleet, "c2", ("metrics.k8s.io", "nodes", "list"))
    _allow(fleet, "c3", ("", "nodes", "list"), ("", "nodes/proxy", "get"))
    return fleet


def _allow(fleet: Fleet, cluster: str, *rules: tuple[str, str, str]) -> None:
    """Grant a Source rights beyond its own, as an administrator of its target may."""
    role: Object = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "more"},
    }
    role["rules"] = [{"apiGroups": [g], "resources": [r], "verbs": [v]} for g, r, v in rules]
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "more"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "more"},
        "subjects": [{"kind": "ServiceAccount", "name": "c1", "namespace": "default"}],
    }
    for thing in (role, binding):
        fleet.kubectl(cluster, "apply", "-f", "-", input=json.dumps(thing))
