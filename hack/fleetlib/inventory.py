"""Connects clusters of a fleet by ClusterProfiles, as an inventory does, in place of kubeconfigs.

The source has the CRD, a namespace with a profile for each target, and a Secret of the profile's
name with a token; the inventory's own plugin reads that Secret for the agent. A ClusterTarget names
the profile, and sets may be tried in its place. CRD and plugin are the inventory project's,
unmodified.
"""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hack.fleetlib import agents, kubeconfigs
from hack.fleetlib.api import Api, condition
from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import catalogue, gobuild

if TYPE_CHECKING:
    from hack.fleetlib.commands import ClusterSite

NAMESPACE = "fleet"
PLUGIN = "secretreader"
"""The program, and the name of its provider in profiles."""
_GROUP = "multicluster.x-k8s.io"
_CRD = f"clusterprofiles.{_GROUP}"
_PROFILES = f"/apis/{_GROUP}/v1alpha1/namespaces/{NAMESPACE}/clusterprofiles"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OURS = "/apis/multicluster.admiralty.io/v1alpha1"
_RBAC = "rbac.authorization.k8s.io"
_ROLES = ("vnode-target-sets", "vnode-decisions")  # which an administrator has to bind
_EXTENSION = "client.authentication.k8s.io/exec"
_SERVED_SECONDS = 30.0
_TOKEN_SECONDS = 10 * 365 * 24 * 3600  # no fleet lives longer

Object = dict[str, Any]


def install(place: ClusterSite) -> None:
    """Install the CRD in a source, make the namespace of profiles, and bind the agent's roles."""
    api = Api(place.kubeconfig)
    api.call("POST", _CRDS, crd())
    api.wait(
        _CRDS,
        lambda found: condition(found.get(_CRD), "Established").get("status") == "True",
        _SERVED_SECONDS,
        {"fieldSelector": f"metadata.name={_CRD}"},
    )
    _make_namespace(api)
    for role in _ROLES:
        binding = {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": "vnode", "name": "vnode"}],
        }
        api.call("POST", f"/apis/{_RBAC}/v1/clusterrolebindings", binding)


def crd() -> Object:
    """Return the CRD of ClusterProfiles as the inventory's module has it."""
    bases = gobuild.source(catalogue.CLUSTER_INVENTORY_MODULE) / "config/crd/bases"
    found: Object = yaml.safe_load((bases / f"{_GROUP}_clusterprofiles.yaml").read_text())
    return found


def agent_config(place: ClusterSite, plugin: Path) -> Object:
    """Return the setting `inventory` for the agent of a source, which has to be installed."""
    variable = {"name": "KUBECONFIG", "value": _reader(place)}
    run = {"command": str(plugin), "provideClusterInfo": True, "env": [variable]}
    return {"namespaces": [NAMESPACE], "providers": [{"name": PLUGIN, "execConfig": run}]}


def _reader(place: ClusterSite) -> str:
    """Write the kubeconfig of the plugin, which looks into the namespace of its context."""
    config = yaml.safe_load(Path(agents.as_service_account(place, "vnode")).read_text())
    config["contexts"][0]["context"]["namespace"] = NAMESPACE
    file = place.folder / "plugin.kubeconfig"
    kubeconfigs.write(file, yaml.safe_dump(config, sort_keys=False))
    return str(file)


def connect(source: ClusterSite, target: ClusterSite) -> None:
    """Make `target` a ClusterTarget of `source` by a profile, and wait for its virtual node."""
    token, here = account(source, target), Api(source.kubeconfig)
    name = target.name
    metadata = {"name": name, "namespace": NAMESPACE}
    secret = {"metadata": metadata, "data": {"token": base64.b64encode(token.encode()).decode()}}
    here.call("POST", f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
    _until_served(here)
    here.call("POST", _PROFILES, profile(name))
    here.call("PATCH", f"{_PROFILES}/{name}/status", {"status": status(target)})
    reference = {"clusterProfile": {"namespace": NAMESPACE, "name": name}}
    cluster_target = _ours("ClusterTarget", {"name": name}, reference)
    here.call("POST", f"{_OURS}/clustertargets", cluster_target)
    agents.wait_for_virtual_node(source, agents.virtual_node(name, ""))


def account(source: ClusterSite, target: ClusterSite) -> str:
    """Make the account of a source in a target, with what a source may do; return a token."""
    there = Api(target.kubeconfig)
    _make_namespace(there)
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    there.call("POST", accounts, {"metadata": {"name": source.name}})
    reference = {"serviceAccount": {"namespace": NAMESPACE, "name": source.name}}
    granted = _ours("ClusterSource", {"name": source.name}, reference)
    there.call("POST", f"{_OURS}/clustersources", granted)
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = there.call("POST", f"{accounts}/{source.name}/token", review)
    return str(answer["status"]["token"])


def profile(name: str) -> Object:
    """Build the profile of a cluster, without its status."""
    return {
        "apiVersion": f"{_GROUP}/v1alpha1",
        "kind": "ClusterProfile",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"fleet": "local"}},
        "spec": {"displayName": f"Cluster {name}", "clusterManager": {"name": "hack-fleet"}},
    }


def status(target: ClusterSite) -> Object:
    """Build the status of a cluster's profile: where it is, and that all is well."""
    known = yaml.safe_load(target.kubeconfig.read_text())["clusters"][0]["cluster"]
    extension = {"name": _EXTENSION, "extension": {"clusterName": target.name}}
    healthy = {
        "type": "ControlPlaneHealthy",
        "status": "True",
        "reason": "Healthy",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "accessProviders": [{"name": PLUGIN, "cluster": {**known, "extensions": [extension]}}],
        "conditions": [healthy],
        "properties": [{"name": "location", "value": target.name}],
    }


def _ours(kind: str, metadata: Object, spec: Object) -> Object:
    version = "multicluster.admiralty.io/v1alpha1"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _make_namespace(api: Api) -> None:
    """Make the namespace of profiles or accounts, if another connection has not done so."""
    body = {"metadata": {"name": NAMESPACE}}
    code, answer = api.request("POST", "/api/v1/namespaces", body)
    if code not in (201, 409):
        raise FleetError(f"namespace {NAMESPACE}: {code} {answer}")


def _until_served(api: Api) -> None:
    """Wait until profiles can be made: an established kind is served a moment later."""
    deadline = time.monotonic() + _SERVED_SECONDS
    while api.request("GET", _PROFILES)[0] != 200:
        if time.monotonic() > deadline:
            raise FleetError(f"{_CRD} is not served within {_SERVED_SECONDS:.0f} s")
        time.sleep(0.1)
