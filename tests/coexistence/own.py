"""What a source has of its own, as it is recorded and made to move: by kubectl, as users do."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from tests import kit
from tests.kit import Fleet
from vnode.api import keys, objects
from vnode.api.objects import Object, Objects

RACK: Final = "example.com/rack"
SPREAD: Final = ("by-host", "by-zone", "by-region", "by-rack")
"""Deployments whose pods have to be spread over these."""
DEPLOYMENTS: Final = tuple(f"deployment/{name}" for name in (*SPREAD, "hinted"))
SYSTEM: Final = ("deployment/operator", "daemonset/agent")
"""Of kube-system; they tolerate everything."""

_SECONDS: Final = kit.PATIENCE


class OwnWorkloads:
    """The workloads of busy.yaml in c1."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def kubectl(self, *words: str) -> str:
        """Run kubectl in the source."""
        return self._fleet.kubectl("c1", *words)

    def items(self, *words: str) -> Objects:
        """Return the objects that `kubectl get` finds."""
        found: Objects = json.loads(self.kubectl("get", *words, "--output", "json"))["items"]
        return found

    def await_all(self, *rolled_out: str) -> None:
        """Wait until all workloads, or these, are rolled out."""
        for workload in rolled_out or (*DEPLOYMENTS, *SYSTEM):
            where = "kube-system" if workload in SYSTEM else "shop"
            limit = f"--timeout={_SECONDS:g}s"
            self.kubectl("rollout", "status", workload, "--namespace", where, limit)

    def restart_all(self) -> None:
        """Replace every pod of every workload, as an upgrade does, and wait for the end of it."""
        self.kubectl("rollout", "restart", *DEPLOYMENTS, "--namespace", "shop")
        self.kubectl("rollout", "restart", *SYSTEM, "--namespace", "kube-system")
        self.await_all()

    def hints(self, service: str) -> dict[str, str]:
        """Return the zone for which each ready endpoint of a Service is, by pod."""
        selector = f"kubernetes.io/service-name={service}"
        slices = self.items("endpointslices", "--namespace", "shop", "--selector", selector)
        endpoints = [each for found in slices for each in found.get("endpoints") or ()]
        return {
            each["targetRef"]["name"]: "".join(
                zone["name"] for zone in (each.get("hints") or {}).get("forZones") or ()
            )
            for each in endpoints
        }

    def await_hints(self, service: str) -> None:
        """Wait until each endpoint of a Service has a hint."""
        deadline = time.monotonic() + _SECONDS
        while not (found := self.hints(service)) or not all(found.values()):
            assert time.monotonic() < deadline, f"no hints: {found}"

    def pods(self) -> dict[str, tuple[str, str]]:
        """Return UID and node of each pod of the workloads, but those on virtual nodes."""
        found = [*self.items("pods", "--namespace", "shop")]
        found += self.items("pods", "--namespace", "kube-system")
        return {
            objects.key(pod): (objects.uid(pod), objects.node_name(pod))
            for pod in found
            if not objects.node_name(pod).startswith("admiralty-")
        }

    def on_virtual_nodes(self) -> list[str]:
        """Return the kinds of the owners of pods on virtual nodes."""
        found = [*self.items("pods", "--namespace", "shop")]
        found += self.items("pods", "--namespace", "kube-system")
        return [
            str((objects.controller_reference(pod) or {}).get("kind"))
            for pod in found
            if objects.node_name(pod).startswith("admiralty-")
        ]

    def until_lured(self) -> None:
        """Wait until a pod of a Deployment is on a virtual node."""
        deadline = time.monotonic() + _SECONDS
        while "ReplicaSet" not in (found := self.on_virtual_nodes()):
            assert time.monotonic() < deadline, f"nobody came: {found}"

    def state(self) -> dict[str, Any]:
        """Return all that must not change by itself, whatever happens to targets."""
        nodes = self.items("nodes", "--selector", keys.REAL_NODES)
        daemons = objects.status(self.items("daemonsets", "--all-namespaces")[0])
        return {
            "pods": self.pods(),
            "nodes": {objects.name(node): _own_part(node) for node in nodes},
            "hints": {name: self.hints(name) for name in ("hinted", "close")},
            "unavailable daemons": daemons.get("numberUnavailable", 0),
        }


def _own_part(node: Object) -> tuple[Object, Any]:
    return objects.labels(node), objects.spec(node).get("taints")
