"""Starts what the suite runs on: a cluster whose only node is virtual, and its target.

The target has a real node, so it is also what the suite is run on straight. Their pods are in one
flat network, as far as the API server of the source is concerned.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from hack.fleetlib import agents, clusters, fleet, networks, progress
from hack.fleetlib.api import is_ready
from hack.fleetlib.conformance import standins, utilities
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import FleetOptions
from hack.fleetlib.realnode import node as realnode
from hack.fleetlib.tools import binaries

if TYPE_CHECKING:
    from hack.fleetlib.api import Api, Object
    from hack.fleetlib.fleet import LocalFleet

SOURCE: Final = "c1"
TARGET: Final = "c2"
POLICIES: Final = Path(__file__).with_name("policies.yaml")
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_TARGETS: Final = "/apis/multicluster.admiralty.io/v1alpha1/clustertargets"
_READER: Final = "kubelet-reader"
_NAMESPACES: Final = "vnode-source-namespaces"
_NODE_SECONDS: Final = 60.0
_POLICY_SECONDS: Final = 60.0
_TAINT: Final = "virtual-kubelet.io/provider"
_ENDPOINTS: Final = ("--endpoint-reconciler-type=lease",)


def start(directory: Path, *, services: bool = False) -> LocalFleet:
    """Start the clusters in `directory` and connect them; on any failure nothing is left.

    With `services`, the target has Services and their names and a second node, the API servers are
    found by them, and `agnhost` has what asks them.
    """
    folder = directory / "images"
    nodes = 2 if services else 1
    servers = [*standins.SERVERS, standins.NAMES] if services else []
    programs = binaries.locate([*standins.PROGRAMS, *servers])
    busybox = shutil.which("busybox")
    if busybox is None:
        raise FleetError("the stand-ins need busybox: run hack/realnode-packages")
    with progress.reported("making stand-ins for the images"):
        more = utilities.entries() if services else []
        standins.write(folder, Path(busybox), programs, more)
    options = FleetOptions(
        names=(SOURCE, TARGET),
        clusters=clusters.ControlPlaneOptions(
            nodes=0, api_server_arguments=_ENDPOINTS if services else ()
        ),
        agents=True,
        real_nodes=(TARGET,) * nodes,
        real_node=realnode.NodeOptions(services=services, images=folder),
    )
    started = fleet.up(directory / "fleet", options)
    try:
        with progress.reported("connecting the clusters"):
            _connect(started, nodes)
    except BaseException:
        started.down()
        raise
    return started


def _connect(known: LocalFleet, nodes: int) -> None:
    api = known.api(SOURCE)
    for policy in yaml.safe_load_all(POLICIES.read_text()):
        _enforce(api, policy)
    _await_enforcement(api)
    _give_rights(known.api(TARGET))
    files = ["--source", str(known.kubeconfig(SOURCE)), "--target", str(known.kubeconfig(TARGET))]
    wide = ["--cluster-wide", "--grant-all-namespaces"]
    agents.vnode("connect", *files, *wide, "--name", TARGET, "--cluster-name", SOURCE)
    annotations = {"vnode.dev/create-namespaces": "true"}
    api.call("PATCH", f"{_TARGETS}/{TARGET}", {"metadata": {"annotations": annotations}})
    _route(known, nodes)
    node = agents.virtual_node(TARGET, "")
    found = api.wait("/api/v1/nodes", lambda nodes: _usable(nodes.get(node)), _NODE_SECONDS)
    if len(found) != 1:
        raise FleetError(f"{SOURCE} is to have one node, and has {', '.join(found)}")


def _enforce(api: Api, policy: Object) -> None:
    name = policy["metadata"]["name"]
    api.call("POST", f"{_ADMISSION}/mutatingadmissionpolicies", policy)
    binding = {
        "apiVersion": policy["apiVersion"],
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    api.call("POST", f"{_ADMISSION}/mutatingadmissionpolicybindings", binding)


def _await_enforcement(api: Api) -> None:
    """Wait until the policies are applied: a node made before would keep its taint.

    The API server reads policies some time after they were made, and no watch tells when.
    """
    space = {"metadata": {"name": "probe"}}
    node = {**space, "spec": {"taints": [{"key": _TAINT, "effect": "NoSchedule"}]}}
    deadline = time.monotonic() + _POLICY_SECONDS
    while True:
        made = api.call("POST", "/api/v1/namespaces?dryRun=All", space)
        tainted = api.call("POST", "/api/v1/nodes?dryRun=All", node)["spec"].get("taints") or ()
        if "annotations" in made["metadata"] and _TAINT not in {t["key"] for t in tainted}:
            return
        if time.monotonic() > deadline:
            raise FleetError(f"{POLICIES.name} has no effect after {_POLICY_SECONDS:.0f} s")
        time.sleep(0.1)


def _give_rights(api: Api) -> None:
    """Let the source make namespaces and read figures of usage (docs/usage.md)."""
    rules = [{"apiGroups": [""], "resources": ["nodes", "nodes/proxy"], "verbs": ["get", "list"]}]
    api.call("POST", f"{_RBAC}/clusterroles", {"metadata": {"name": _READER}, "rules": rules})
    account = {"kind": "ServiceAccount", "namespace": agents.NAMESPACE, "name": SOURCE}
    for name in (_READER, _NAMESPACES):
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": f"{SOURCE}-{name}"}, "roleRef": role, "subjects": [account]}
        api.call("POST", f"{_RBAC}/clusterrolebindings", binding)


def _route(known: LocalFleet, nodes: int) -> None:
    """Let the source reach the pods of the target by their addresses."""
    netns = known.state().cluster(SOURCE).netns or ""
    for node in (known.real_node(TARGET, number) for number in range(nodes)):
        networks.route(netns, node.pod_range, node.address)


def _usable(node: Object | None) -> bool:
    """Tell whether the node is Ready, without a taint, and knows what it has."""
    if not is_ready(node):
        return False
    assert node is not None
    return not node["spec"].get("taints") and "cpu" in node["status"].get("allocatable", {})
