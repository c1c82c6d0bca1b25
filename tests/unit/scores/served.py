"""Scores on an API server in memory: their CRDs, and objects with scores of clusters."""

from __future__ import annotations

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.kinds import Kind
from vnode.api.objects import Object

BOTH = (kinds.ADDON_PLACEMENT_SCORES, kinds.CLUSTER_SCORES)


def crd(kind: Kind) -> Object:
    """Return the CRD of a kind, as far as it is read."""
    return {
        "metadata": {"name": kind.resource},
        "spec": {"versions": [{"name": kind.version, "served": True}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def serve(server: APIServer, *served: Kind) -> None:
    """Have a source serve kinds with scores, by default both."""
    for kind in served or BOTH:
        server.add(kinds.CRDS, crd(kind))


def put_add_on(server: APIServer, cluster: str, *, until: str = "", **scores: int) -> None:
    """Write the AddOnPlacementScore `usage` of a cluster."""
    status = _said(until, scores)
    if server.find(kinds.ADDON_PLACEMENT_SCORES, "usage", cluster) is None:
        metadata = {"name": "usage", "namespace": cluster}
        server.add(kinds.ADDON_PLACEMENT_SCORES, {"metadata": metadata, "status": status})
    else:
        server.change(
            kinds.ADDON_PLACEMENT_SCORES, "usage", cluster, lambda obj: obj.update(status=status)
        )


def put_own(
    server: APIServer, name: str, target: Object, *, until: str = "", **scores: int
) -> None:
    """Write a ClusterScore."""
    spec = {"target": target, **_said(until, scores)}
    if server.find(kinds.CLUSTER_SCORES, name) is None:
        server.add(kinds.CLUSTER_SCORES, {"metadata": {"name": name}, "spec": spec})
    else:
        server.change(kinds.CLUSTER_SCORES, name, "", lambda obj: obj.update(spec=spec))


def _said(until: str, scores: dict[str, int]) -> Object:
    listed = [{"name": name, "value": value} for name, value in scores.items()]
    return {"scores": listed, **({"validUntil": until} if until else {})}
