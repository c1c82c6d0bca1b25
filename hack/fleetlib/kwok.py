"""Configures kwok, which simulates nodes, pods, and their kubelets.

Pure: the text of kwok's configuration, the Node objects, and the lines of the pods' log. All pods
of a cluster share one log file and one exec environment, in which `$CLUSTER` names the cluster.

A pod's annotations delay what is otherwise immediate, in Go durations such as `5s`:
`pod-ready.stage.kwok.x-k8s.io/delay`, `pod-complete.stage.kwok.x-k8s.io/delay` (pods of Jobs) and
`pod-delete.stage.kwok.x-k8s.io/delay`. `kwok.x-k8s.io/usage-cpu` and `kwok.x-k8s.io/usage-memory`,
quantities, are what each of its containers uses, where usage is played too (`usage.yaml`).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.fleetlib import addresses

_STAGES = Path(__file__).with_name("stages.yaml")
_USAGE = Path(__file__).with_name("usage.yaml")


LOUD = "loud"
"""The name of containers with a log of their own, `loud_log`, for who wants a long one."""


def loud_log(folder: Path) -> Path:
    """Return the file that containers called `loud` have for a log; whoever has one writes it."""
    return folder / "loud.log"


@dataclass(frozen=True, slots=True)
class NodeSize:
    """What a node has: its amounts, devices among them in `more`, and what marks it."""

    cpu: str = "32"
    memory: str = "256Gi"
    pods: str = "110"
    more: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()


def configuration(name: str, folder: Path, *, usage: bool = False) -> str:
    """Return kwok's configuration for the cluster `name`, whose files are in `folder`.

    With `usage`, nodes serve the usage of their pods; off by default, since it costs kwok memory.
    """
    log, previous = str(folder / "pods.log"), str(folder / "pods-previous.log")
    workdir = str(folder / "exec")
    local = {"workDir": workdir, "envs": [{"name": "CLUSTER", "value": name}]}
    documents = [
        _document("KwokConfiguration", "config.kwok.x-k8s.io", options=_OPTIONS),
        *yaml.safe_load_all(_STAGES.read_text()),
        _cluster_wide(
            "ClusterLogs",
            logs=[
                {"logsFile": log, "previousLogsFile": previous},
                {"containers": [LOUD], "logsFile": str(loud_log(folder))},
            ],
        ),
        _cluster_wide("ClusterAttach", attaches=[{"logsFile": log}]),
        _cluster_wide("ClusterExec", execs=[{"local": local}]),
        # Every port of every pod is an echo service.
        _cluster_wide("ClusterPortForward", forwards=[{"command": ["cat"]}]),
        *(yaml.safe_load_all(_USAGE.read_text()) if usage else ()),
    ]
    return yaml.safe_dump_all(documents, sort_keys=False)


_OPTIONS = {
    "enableDebuggingHandlers": True,
    "podPlayStageParallelism": 32,
    "nodePlayStageParallelism": 16,
    "nodeLeaseParallelism": 16,
    "podsOnNodeSyncParallelism": 4,
}


def _document(kind: str, group: str, **content: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": kind,
        "metadata": {"name": "fleet"},
        **content,
    }


def _cluster_wide(kind: str, **spec: Any) -> dict[str, Any]:
    return _document(kind, "kwok.x-k8s.io", spec=spec)


def log_line(text: str, at: datetime.datetime) -> str:
    """Return one line as a container runtime writes it: time, stream, `F` for a full line, text."""
    return f"{at.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%S.%f}000Z stdout F {text}\n"


def node(name: str, cluster: str, address: str, size: NodeSize, zone: str) -> dict[str, Any]:
    """Return a Node for kwok to look after. kwok makes it Ready and keeps its lease."""
    resources = {
        "cpu": size.cpu,
        "memory": size.memory,
        "pods": size.pods,
        "ephemeral-storage": "1Ti",
        **size.more,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {
                "kwok.x-k8s.io/node": "fake",
                "node.alpha.kubernetes.io/ttl": "0",
                # kwok plays many nodes at one address; metrics-server heeds this.
                "metrics.k8s.io/resource-metrics-path": f"/metrics/nodes/{name}/metrics/resource",
            },
            "labels": {
                "type": "kwok",
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "kwok",
                "topology.kubernetes.io/region": cluster,
                "topology.kubernetes.io/zone": f"{cluster}-{zone}",
                **size.labels,
            },
        },
        **({"spec": {"taints": [dict(taint) for taint in size.taints]}} if size.taints else {}),
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": resources,
            "capacity": resources,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": addresses.KWOK}},
        },
    }
