#!/usr/bin/env python3
"""Writes a ClusterProfile, and a Secret with its token, for each Cluster of Karmada.

They are what the inventory's own plugin `secretreader` reads: see docs/inventory-karmada.md. This
takes Python and kubectl, and may run again at any time, by cron for example: a token, CA or address
that has changed in Karmada is then changed here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any, NamedTuple

MANAGER = "karmada"
_CLUSTERS = "clusters.cluster.karmada.io"
_PROFILES = "clusterprofiles.multicluster.x-k8s.io"
_LABELS = {"x-k8s.io/cluster-manager": MANAGER}
_EXTENSION = "client.authentication.k8s.io/exec"
_WRITE = ("apply", "--server-side", "--force-conflicts", "--field-manager=karmada-profiles", "-f-")


class Made(NamedTuple):
    """What is written for one Cluster; `problem` says why there is no way to get at it."""

    profile: dict[str, Any]
    status: dict[str, Any]
    secret: dict[str, Any] | None
    problem: str


def made_of(
    cluster: dict[str, Any], credentials: dict[str, Any] | None, namespace: str, secrets: str
) -> Made:
    """Return the objects for a Cluster and the Secret that its `spec.secretRef` names."""
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    labels = {**cluster["metadata"].get("labels", {}), **_LABELS}
    profile = {
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ClusterProfile",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"displayName": name, "clusterManager": {"name": MANAGER}},
    }
    data = (credentials or {}).get("data") or {}
    problem = _problem(spec, data)
    status = {**_facts(cluster), "accessProviders": [] if problem else [_access(name, spec, data)]}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": secrets, "name": secret_name(name), "labels": _LABELS},
        "data": {"token": data.get("token", "")},
    }
    return Made(profile, status, None if problem else secret, problem)


def secret_name(cluster: str) -> str:
    """Return the name of the Secret with a Cluster's token, which the plugin is told."""
    return f"{MANAGER}-{cluster}"


def _problem(spec: dict[str, Any], data: dict[str, str]) -> str:
    if not spec.get("apiEndpoint"):
        return "has no spec.apiEndpoint"

    if spec.get("proxyURL"):
        return "is reached through a proxy (spec.proxyURL), which vnode does not use"

    if missing := [key for key in ("token", "caBundle") if not data.get(key)]:
        return f"has no {missing[0]} in the Secret that spec.secretRef names"

    return ""


def _access(name: str, spec: dict[str, Any], data: dict[str, str]) -> dict[str, Any]:
    server = spec["apiEndpoint"]
    cluster = {
        "server": server if "://" in server else f"https://{server}",
        "certificate-authority-data": data["caBundle"],
        "extensions": [{"name": _EXTENSION, "extension": {"clusterName": secret_name(name)}}],
    }
    return {"name": "secretreader", "cluster": cluster}


def _facts(cluster: dict[str, Any]) -> dict[str, Any]:
    """Return version, properties and health."""
    spec, status = cluster["spec"], cluster.get("status", {})
    values = {
        "provider": spec.get("provider"),
        "region": spec.get("region"),
        "zones": ",".join(spec.get("zones") or [spec.get("zone") or ""]),
    }
    conditions = [
        {
            "type": "ControlPlaneHealthy",
            "status": entry["status"],
            "reason": entry["reason"],
            "message": entry.get("message", ""),
            "lastTransitionTime": entry["lastTransitionTime"],
        }
        for entry in status.get("conditions", [])
        if entry["type"] == "Ready"
    ]
    return {
        "version": {"kubernetes": status.get("kubernetesVersion", "")},
        "properties": [{"name": name, "value": value} for name, value in values.items() if value],
        "conditions": conditions,
    }


def kubectl(config: str, *words: str, given: Any = None) -> Any:
    """Run kubectl, ending this program if it fails; return what it writes as JSON, if it is."""
    done = subprocess.run(
        ["kubectl", "--kubeconfig", config, *words],
        input=None if given is None else json.dumps(given),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.returncode)

    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def main() -> None:
    """Read Karmada, write the source, say what came of each Cluster."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--karmada", required=True, help="kubeconfig of Karmada's API server")
    parser.add_argument("--source", required=True, help="kubeconfig of the cluster with vnode")
    parser.add_argument("--namespace", default=MANAGER, help="of the profiles")
    parser.add_argument("--secrets-namespace", default="vnode", help="where the plugin looks")
    parser.add_argument("--prune", action="store_true", help="remove what is not in Karmada")
    given = parser.parse_args()
    clusters = kubectl(given.karmada, "get", _CLUSTERS, "-o=json")["items"]
    for cluster in clusters:
        name, reference = cluster["metadata"]["name"], cluster["spec"].get("secretRef")
        words = ("get", "secret", "--ignore-not-found", "-o=json")
        credentials = reference and kubectl(
            given.karmada, *words, f"--namespace={reference['namespace']}", reference["name"]
        )
        made = made_of(cluster, credentials, given.namespace, given.secrets_namespace)
        if made.secret:
            kubectl(given.source, *_WRITE, given=made.secret)

        kubectl(given.source, *_WRITE, given=made.profile)
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": made.status}))
        kubectl(given.source, "patch", _PROFILES, name, f"-n={given.namespace}", *patch)
        print(f"{name}: {made.problem or made.status['accessProviders'][0]['cluster']['server']}")

    if given.prune:
        _prune(given, {cluster["metadata"]["name"] for cluster in clusters})


def _prune(given: argparse.Namespace, names: set[str]) -> None:
    labelled = f"-l=x-k8s.io/cluster-manager={MANAGER}"
    words = ("get", _PROFILES, f"-n={given.namespace}", labelled, "-o=json")
    for profile in kubectl(given.source, *words)["items"]:
        name = profile["metadata"]["name"]
        if name not in names:
            delete = ("delete", "--ignore-not-found")
            kubectl(given.source, *delete, _PROFILES, name, f"-n={given.namespace}")
            secret = ("secret", secret_name(name), f"-n={given.secrets_namespace}")
            kubectl(given.source, *delete, *secret)
            print(f"{name}: removed")


if __name__ == "__main__":
    main()
