"""A source with Kueue's kinds, a check of ours, and targets whose rooms a test chooses."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.unit.scheduling.builders import virtual_node
from tests.unit.scheduling.gpu_targets import GPU, make_framework, reported
from vnode.agent import kueue_checks
from vnode.api import keys, kinds, names, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.kube.informer import Informer
from vnode.kueue.controller import WorkloadChecks
from vnode.kueue.judging import JudgedBy
from vnode.pods import chaperon_spec
from vnode.runtime.links import Links
from vnode.scheduling import node_rows
from vnode.scheduling.cache import Cache

CHECK = "room"


def crd(kind: Kind) -> Object:
    return {
        "metadata": {"name": kind.resource},
        "spec": {"versions": [{"name": kind.version, "served": True}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def pod_set(name: str, count: int, *, gpus: int = 0, cpu: str = "1", **spec: Any) -> Object:
    requests = {"cpu": cpu, **({GPU: str(gpus)} if gpus else {})}
    container = {"name": "c", "resources": {"requests": requests}}
    return {
        "name": name,
        "count": count,
        "template": {"spec": {"containers": [container], **spec}},
    }


class FoundLoss(NamedTuple):
    """For how long a target is lost, and whether that is known to be so now."""

    seconds: float
    is_known: bool


class FakeLosses:
    """The targets that a test has had lost, by node."""

    def __init__(self, clock: Any) -> None:
        self.is_known = True
        self._clock = clock
        self._since: dict[str, float] = {}
        self._changed: list[Callable[[str], None]] = []

    def subscribe(self, changed: Callable[[str], None]) -> None:
        self._changed.append(changed)
        for node in self._since:
            changed(node)

    def loss(self, node: str) -> FoundLoss | None:
        since = self._since.get(node)
        return None if since is None else FoundLoss(self._clock.monotonic() - since, self.is_known)

    def lose(self, node: str) -> None:
        self._since[node] = self._clock.monotonic()
        self._tell(node)

    def find(self, node: str) -> None:
        del self._since[node]
        self._tell(node)

    def _tell(self, node: str) -> None:
        for changed in self._changed:
            changed(node)


class KueueEnvironment:
    """`answers` runs the controller as a new leader would."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.server = APIServer("source", clock)
        self.cache = Cache()
        self.losses = FakeLosses(clock)
        self.lost = ""  # the node of a target that a test has lost
        self.manifests = SavedManifests(lambda: b"key")
        self._uids = itertools.count()
        for kind in (kinds.ADMISSION_CHECKS, kinds.WORKLOADS, kinds.RESOURCE_FLAVORS):
            self.server.add(kinds.CRDS, crd(kind))

        spec = {"controllerName": keys.PLACEMENT_CHECK}
        self.server.add(kinds.ADMISSION_CHECKS, {"metadata": {"name": CHECK}, "spec": spec})
        self.judged_by = JudgedBy(
            make_framework(
                manifest_refusal=self.manifests.refusal,
                constraints=self._constraints,
                clock=clock,
            ),
            self.cache,
            as_proxy=lambda pod: kueue_checks.as_proxy(pod, self.manifests),
            constraints=self._constraints,
            lasting=kueue_checks.LASTING,
            counted=kueue_checks.COUNTED,
        )

    def _constraints(self, pod: Object) -> Object | None:
        return chaperon_spec.constraints(pod, self.manifests)

    def room(self, name: str, *nodes: tuple[int, int, str], size: int = 0, **virtual: Any) -> str:
        """Have a target report nodes of these free GPUs, free CPUs and models.

        It has `size` CPUs in all, by default those that are free.
        """
        node = names.virtual_node("ns", name)
        total, largest, rows = reported(*nodes, pods=110)
        labels = {
            keys.PROVIDER_LABEL: keys.PROVIDER,
            keys.TARGET_NAMESPACE: "ns",
            keys.TARGET_NAME: name,
        }
        all_ = {**total, "cpu": size * 1000} if size else total
        made_node = virtual_node(
            node,
            target=("ns", name),
            labels=labels,
            taints=[keys.PROVIDER_TAINT],
            allocatable=all_,
            **virtual,
        )
        self.cache.update_node(made_node)
        if self.server.find(kinds.NODES, node) is None:
            self.server.add(kinds.NODES, {**made_node.node, "status": {}})
        else:  # as each report is an event
            mark = {"annotations": {"reported": str(next(self._uids))}}
            self.server.change(kinds.NODES, node, "", lambda n: n["metadata"].update(mark))

        self.cache.update_free(node, total, largest, node_rows.of_rows(rows, largest), rows)
        return node

    def workload(
        self, name: str, *pod_sets: Object, namespace: str = "ns", **admission: Any
    ) -> None:
        """Have a workload get its quota."""
        assigned = [{"name": each["name"], **admission} for each in pod_sets]
        status = {
            "admission": {"clusterQueue": "q", "podSetAssignments": assigned},
            "admissionChecks": [self.pending()],
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
        }
        metadata = {"name": name, "namespace": namespace}
        spec = {"podSets": list(pod_sets)}
        self.server.add(kinds.WORKLOADS, {"metadata": metadata, "spec": spec, "status": status})

    def pending(self, **fields: Any) -> Object:
        moment = objects.timestamp(self.clock.now())
        return {
            "name": CHECK,
            "state": "Pending",
            "message": "",
            "lastTransitionTime": moment,
            **fields,
        }

    def requeue(self, name: str) -> None:
        """Evict a workload that was told to retry, and reserve its quota again, as Kueue does."""

        def reset(workload: Object) -> None:
            entry = workload["status"]["admissionChecks"][0]
            count = entry.get("retryCount", 0) + (entry["state"] == "Retry")
            workload["status"]["admissionChecks"] = [self.pending(retryCount=count)]

        self.server.change(kinds.WORKLOADS, name, "ns", reset)

    def let_in(self, name: str, target: str, seconds: float = 0.0) -> None:
        """Have a former leader have let a workload into a target, so many seconds ago."""
        moment = self.clock.now() - timedelta(seconds=seconds)
        selector = {keys.TARGET_NAMESPACE: "ns", keys.TARGET_NAME: target}

        def ready(workload: Object) -> None:
            updates = [
                {"name": each["name"], "nodeSelector": selector}
                for each in workload["spec"]["podSets"]
            ]
            entry = self.pending(state="Ready", podSetUpdates=updates)
            entry["lastTransitionTime"] = objects.timestamp(moment)
            workload["status"]["admissionChecks"] = [entry]

        self.server.change(kinds.WORKLOADS, name, "ns", ready)

    def finish(self, name: str) -> None:
        finished = {"type": "Finished", "status": "True"}
        self.server.change(
            kinds.WORKLOADS, name, "ns", lambda w: w["status"]["conditions"].append(finished)
        )

    def entry(self, name: str) -> Object:
        """Return what the status of a workload says of the check."""
        found = self.server.find(kinds.WORKLOADS, name, "ns")
        assert found
        entry: Object = found["status"]["admissionChecks"][0]
        return entry

    def states(self, *workloads: str) -> list[str]:
        return [self.entry(name)["state"] for name in workloads]

    def node_of(self, name: str) -> str:
        """Return the target that all pods of a workload are held in."""
        selectors = [each["nodeSelector"] for each in self.entry(name)["podSetUpdates"]]
        assert all(selector == selectors[0] for selector in selectors)
        target: str = selectors[0][keys.TARGET_NAME]
        return target

    @asynccontextmanager
    async def answers(self) -> AsyncIterator[WorkloadChecks]:
        client = self.server.client()
        nodes = Informer(client, kinds.NODES)
        checks = WorkloadChecks(client, self.judged_by, Links(), nodes, self.losses, self.clock)
        async with links.following(nodes), background.running(checks.run()):
            yield checks

    def end(self, uid: str, node: str, gpus: int = 0, cpu: str = "1") -> None:
        """Have a pod that runs in a target be told to end."""
        requests = {"cpu": cpu, **({GPU: str(gpus)} if gpus else {})}
        self.cache.set_pod(
            {
                "metadata": {
                    "name": uid,
                    "namespace": "ns",
                    "uid": uid,
                    "deletionTimestamp": objects.timestamp(self.clock.now()),
                },
                "spec": {
                    "nodeName": node,
                    "containers": [{"name": "c", "resources": {"requests": requests}}],
                },
            }
        )

    def come(
        self, checks: WorkloadChecks, workload: str, uid: str, node: str, **more: Any
    ) -> Object:
        """Have a pod of a workload be bound, after the scheduler has promised it its place."""
        marks = {keys.KUEUE_WORKLOAD: f"{workload}/main"}
        pod: Object = {
            "metadata": {"name": uid, "namespace": "ns", "uid": uid, "annotations": marks},
            "spec": {
                "schedulerName": keys.PROXY_SCHEDULER,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                **more,
            },
        }
        checks.on_pod(None, pod)
        self.cache.assume(pod, node, self.clock.monotonic())
        bound = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        self.cache.set_pod(bound)
        checks.on_pod(pod, bound)
        self.cache.observe(uid, node, self.clock.monotonic())
        return bound
