"""Has a kwok take over the nodes and the pods of one that has ended."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.fleetlib.api import Api, Object

_HELD_SECONDS = 90.0  # until kwok holds its nodes
_LOOKS = 5  # at most, at the pods that wait
_LOOK_SECONDS = 1.0  # for which they may wait until kwok is made to look at them
_LOOKED_AT = "fleet.vnode.dev/looked-at"  # an annotation, which is taken off at once
_KWOK_NODES = "/api/v1/nodes?labelSelector=type%3Dkwok"
_PODS = "/api/v1/pods"
_PENDING = {"fieldSelector": "status.phase=Pending"}
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def release_nodes(api: Api) -> None:
    """Delete the leases by which a kwok that has ended holds its nodes.

    Another one, which calls itself by another name, would take them up only when they expire.
    """
    for lease in api.call("GET", _LEASES)["items"]:
        name = _name(lease)
        if lease["spec"].get("holderIdentity") != name:  # a kubelet's own
            api.call("DELETE", f"{_LEASES}/{name}")


def wake_pods(api: Api) -> None:
    """Have a kwok that was just started look at all pods of its nodes.

    It lists them once, and drops those whose nodes it does not hold yet: on a busy machine a pod
    that was bound while no kwok ran never started. A change has kwok look again.
    """
    nodes = {_name(node) for node in api.call("GET", _KWOK_NODES)["items"]}
    api.wait(
        _LEASES, lambda leases: nodes <= {_name(lease) for lease in leases.values()}, _HELD_SECONDS
    )

    def waiting(pods: Iterable[Object]) -> list[Object]:
        return [pod for pod in pods if pod["spec"].get("nodeName") in nodes]

    for _ in range(_LOOKS):
        with suppress(TimeoutError):
            api.wait(_PODS, lambda pods: not waiting(pods.values()), _LOOK_SECONDS, _PENDING)
            return

        for pod in waiting(api.call("GET", f"{_PODS}?{urlencode(_PENDING)}")["items"]):
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            for value in ("now", None):
                api.request("PATCH", path, {"metadata": {"annotations": {_LOOKED_AT: value}}})


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
