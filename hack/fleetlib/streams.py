"""Makes the agents of a cluster what its API server connects streams of sources to.

In a real cluster agents are pods behind a Service. Here they are processes, so pods stand for them,
which nothing runs: an API server connects to no address that is not a pod's. It refuses loopback
addresses, so a fleet that has no other ones goes without streams.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from hack.fleetlib import addresses
from hack.fleetlib.api import Api

if TYPE_CHECKING:
    from hack.fleetlib.commands import ClusterSite

SERVICE = "vnode"
PORT = "streams"

_CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def publish(place: ClusterSite, namespace: str) -> None:
    """Create the Service, and a pod for each agent."""
    if any(ipaddress.ip_address(address).is_loopback for address in place.agents):
        return

    api, core = Api(place.kubeconfig), f"/api/v1/namespaces/{namespace}"
    for number, address in enumerate(place.agents):
        api.call("POST", f"{core}/pods", _pod(number))
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        api.call("PATCH", f"{core}/pods/{_name(number)}/status", {"status": status})

    api.call("POST", f"{core}/services", _service())
    api.call("POST", f"{core}/endpoints", _endpoints(place.agents, namespace))


def _name(number: int) -> str:
    return f"agent-process-{number}"


def _pod(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _name(number)},
        "spec": {
            "schedulerName": "none",
            "serviceAccountName": "vnode",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{"name": "agent", "image": "process", "securityContext": _CONFINED}],
        },
    }


def _service() -> dict[str, Any]:
    port = {"name": PORT, "port": addresses.AGENT_STREAMS}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE},
        "spec": {"clusterIP": "None", "ports": [port]},
    }


def _endpoints(agents: tuple[str, ...], namespace: str) -> dict[str, Any]:
    ready = [
        {
            "ip": address,
            "targetRef": {"kind": "Pod", "name": _name(number), "namespace": namespace},
        }
        for number, address in enumerate(agents)
    ]
    port = {"name": PORT, "port": addresses.AGENT_STREAMS}
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": SERVICE},
        "subsets": [{"addresses": ready, "ports": [port]}],
    }
