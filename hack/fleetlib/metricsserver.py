"""Runs metrics-server in a cluster of a fleet, for `kubectl top` and the HorizontalPodAutoscaler.

A process beside the API server, reached by aggregation: an APIService, a Service without a selector
and an EndpointSlice that names the process' address. Loopback addresses are not allowed there, so
it needs network namespaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.fleetlib import addresses, agents, clusters, processes
from hack.fleetlib.api import Api
from hack.fleetlib.errors import FleetError
from hack.fleetlib.state import Process

if TYPE_CHECKING:
    from pathlib import Path

    from hack.fleetlib.commands import ClusterSite

PROCESS = "metrics-server"
NAMESPACE = "kube-system"
_RBAC = "rbac.authorization.k8s.io"


def check(mode: str) -> None:
    """Raise FleetError where metrics-server cannot run."""
    if mode != "netns":
        raise FleetError(
            "--metrics-server needs network namespaces (root): an API server is not sent to "
            "loopback addresses"
        )


def start(directory: Path, place: ClusterSite, binary: Path) -> None:
    """Register metrics-server, start it, and wait until the API server asks it."""
    api = Api(place.kubeconfig)
    for path, thing in manifests(place.address):
        api.call("POST", path, thing)
    kubeconfig = agents.as_service_account(place, PROCESS, NAMESPACE)
    definition = Process(command(place, binary, kubeconfig), place.file(f"{PROCESS}.log"))
    processes.start(directory, place.name, PROCESS, definition)
    clusters.until(directory, place.name, PROCESS, lambda: _available(api))


def _available(api: Api) -> bool:
    service = api.call("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")
    conditions = service.get("status", {}).get("conditions", ())
    return any(c["type"] == "Available" and c["status"] == "True" for c in conditions)


def command(place: ClusterSite, binary: Path, kubeconfig: str) -> list[str]:
    """Return its command line: shortest resolution, and kubelets' certificates not verified.

    kwok's is of the cluster's CA, but those of virtual nodes are of the agent's own.
    """
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={place.address}",
        f"--secure-port={addresses.METRICS_SERVER}",
        f"--tls-cert-file={place.pki('metrics-server.crt')}",
        f"--tls-private-key-file={place.pki('metrics-server.key')}",
        "--metric-resolution=10s",
        "--kubelet-request-timeout=8s",
        "--kubelet-insecure-tls",
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-use-node-status-port",
    ]


def manifests(address: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (path, object) of all objects to create, in order."""
    rbac, core = f"/apis/{_RBAC}/v1", f"/api/v1/namespaces/{NAMESPACE}"
    return [
        (f"{core}/serviceaccounts", _named("v1", "ServiceAccount", PROCESS, NAMESPACE)),
        (f"{rbac}/clusterroles", _reader_of_kubelets()),
        (f"{rbac}/clusterrolebindings", _binding(f"system:{PROCESS}", f"system:{PROCESS}")),
        (
            f"{rbac}/clusterrolebindings",
            _binding(f"{PROCESS}:system:auth-delegator", "system:auth-delegator"),
        ),
        (f"{rbac}/namespaces/{NAMESPACE}/rolebindings", _reader_of_authentication()),
        (f"{core}/services", _service()),
        (
            f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices",
            _endpoint_slice(address),
        ),
        ("/apis/apiregistration.k8s.io/v1/apiservices", _api_service()),
    ]


def _named(version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _reader_of_kubelets() -> dict[str, Any]:
    rules = [
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]},
    ]
    return _named(f"{_RBAC}/v1", "ClusterRole", f"system:{PROCESS}", rules=rules)


def _binding(name: str, role: str) -> dict[str, Any]:
    return _named(
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        name,
        roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        subjects=[_account()],
    )


def _reader_of_authentication() -> dict[str, Any]:
    role = {
        "apiGroup": _RBAC,
        "kind": "Role",
        "name": "extension-apiserver-authentication-reader",
    }
    return _named(
        f"{_RBAC}/v1",
        "RoleBinding",
        f"{PROCESS}-auth-reader",
        NAMESPACE,
        roleRef=role,
        subjects=[_account()],
    )


def _account() -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": PROCESS, "namespace": NAMESPACE}


def _service() -> dict[str, Any]:
    port = {"name": "https", "port": 443, "targetPort": addresses.METRICS_SERVER}
    return _named("v1", "Service", PROCESS, NAMESPACE, spec={"ports": [port]})


def _endpoint_slice(address: str) -> dict[str, Any]:
    found = _named(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        f"{PROCESS}-fleet",
        NAMESPACE,
        addressType="IPv4",
        ports=[{"name": "https", "port": addresses.METRICS_SERVER, "protocol": "TCP"}],
        endpoints=[{"addresses": [address], "conditions": {"ready": True}}],
    )
    found["metadata"]["labels"] = {"kubernetes.io/service-name": PROCESS}
    return found


def _api_service() -> dict[str, Any]:
    spec = {
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "service": {"name": PROCESS, "namespace": NAMESPACE},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    return _named("apiregistration.k8s.io/v1", "APIService", "v1beta1.metrics.k8s.io", spec=spec)
