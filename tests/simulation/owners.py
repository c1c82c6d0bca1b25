"""Users and controllers of the source: they make pods, and make them again when they are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import jsonpatch

from tests.apiserver.status import StatusError
from tests.apiserver.store import Change
from tests.permitted import MANIFESTS
from tests.simulation.clusters import DEVICE, NAMESPACE, SimulatedCluster, target_key
from tests.simulation.kubelet import FAILS, FAREWELL, RUNS
from tests.simulation.schedule import SimulatedWorkload, WorkloadOwner
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.api.taints import NO_EXECUTE
from vnode.planning.failover import Failover
from vnode.webhook import election, mutate

APP: Final = "app"
_HASH: Final = "pod-template-hash"
TRACKING: Final = "batch.kubernetes.io/job-tracking"
_KINDS: Final = {
    WorkloadOwner.REPLICA_SET: ("apps/v1", "ReplicaSet"),
    WorkloadOwner.STATEFUL_SET: ("apps/v1", "StatefulSet"),
    WorkloadOwner.JOB: ("batch/v1", "Job"),
}
TOLERATIONS: Final = tuple(  # an API server gives them to pods that have none
    {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": 300}
    for key in keys.NODE_FAILURES
)
_MOST: Final = 12  # pods that one workload makes of a template: one whose pods always end goes on


@dataclass(slots=True)
class Controllers:
    """Plays all of them; `wanted` is what is to be there now."""

    cluster: SimulatedCluster
    targets: Sequence[str]
    failover: Failover | None = None
    """What the webhook finds in the policies of all pods."""
    wanted: dict[str, SimulatedWorkload] = field(default_factory=dict)
    counted: dict[str, set[str]] = field(default_factory=dict)  # Job -> UIDs that succeeded
    made: dict[str, str] = field(default_factory=dict)  # UID -> key: all pods that ever were
    touched: set[str] = field(default_factory=set)  # UIDs of the pods that somebody ended
    _made: dict[str, int] = field(default_factory=dict)  # by workload: the pods so far
    _templates: dict[str, int] = field(default_factory=dict)  # by Deployment: those before this one
    _due: set[str] = field(default_factory=set)  # workloads that will be looked at

    def follow(self) -> None:
        """Hear of all changes from now on."""
        self.cluster.server.store.changed.add(self._on_change)

    def create(self, workload: SimulatedWorkload) -> None:
        """Have a workload from now on."""
        self.wanted[workload.name] = workload
        self._made[workload.name] = 0
        self.counted[workload.name] = set()
        if workload.owner is WorkloadOwner.USER:
            for _number in range(workload.count):
                self._create_pod(workload)
        else:
            self._reconcile(workload.name)

    def shrink(self, name: str) -> None:
        """Want half as many pods of a workload."""
        workload = self.wanted[name]
        self.wanted[name] = replace(workload, count=(workload.count + 1) // 2)
        self._look_soon(name)

    def roll_out(self, name: str) -> None:
        """Have another template in a Deployment."""
        self._templates[name] = self._templates.get(name, 0) + 1
        self._look_soon(name)

    def was_rolled_out(self, name: str) -> bool:
        """Tell whether a Deployment ever had another template."""
        return bool(self._templates.get(name))

    def deployments(self) -> list[str]:
        """List the Deployments that there are."""
        return [n for n, w in self.wanted.items() if w.owner is WorkloadOwner.REPLICA_SET]

    def remove(self, name: str) -> None:
        """Have a workload no more, with its pods."""
        if self.wanted.pop(name, None) is not None:
            for pod in self.pods_of(name):
                self.delete(pod)

            self._look_soon(name)

    def delete(self, pod: Object, grace: int | None = None) -> None:
        """Delete a pod."""
        self.touched.add(objects.uid(pod))
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        self.cluster.writer.delete(kinds.PODS, objects.key(pod), options)

    def pods_of(self, name: str) -> Objects:
        """List the pods of a workload; they must not be changed."""
        return [pod for pod in self.cluster.pods() if objects.labels(pod).get(APP) == name]

    def missing(self, workload: SimulatedWorkload) -> int:
        """Tell how many pods are to be made."""
        pods = self.pods_of(workload.name)
        count = workload.count - len(self.counted[workload.name])
        match workload.owner:
            case WorkloadOwner.USER:
                return 0
            case WorkloadOwner.STATEFUL_SET:
                return count - len(pods)
            case WorkloadOwner.REPLICA_SET:
                return self._rollout(workload).missing
            case _:
                return count - sum(map(_is_active, pods))

    def is_spent(self, name: str) -> bool:
        """Tell whether a workload has made as many pods as it ever may."""
        return self._made[name] >= _MOST * (1 + self._templates.get(name, 0))

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind is kinds.PODS:
            name = objects.labels(change.new or change.old or {}).get(APP, "")
            if name in self._made:
                self._look_soon(name)

    def _look_soon(self, name: str) -> None:
        if name not in self._due:
            self._due.add(name)
            self.cluster.soon(lambda: self._reconcile(name))

    def _reconcile(self, name: str) -> None:
        self._due.discard(name)
        workload = self.wanted.get(name)
        for pod in self.pods_of(name):
            if objects.is_terminating(pod) and not objects.spec(pod).get("nodeName"):
                self.cluster.set_status(pod, {"phase": "Failed"})  # as PodGC does

        for pod in self.pods_of(name):
            self._count(name, pod)
            is_stateful = workload is not None and workload.owner is WorkloadOwner.STATEFUL_SET
            if is_stateful and objects.is_finished(pod) and not objects.is_terminating(pod):
                self.delete(pod)

        if workload is not None:
            for _number in range(self.missing(workload)):
                if not self.is_spent(name):
                    self._create_pod(workload)

            if workload.owner is WorkloadOwner.REPLICA_SET:
                self._delete_surplus(workload)

    def _delete_surplus(self, workload: SimulatedWorkload) -> None:
        """Delete pods that are too many, in the order of the ReplicaSet controller."""
        for pod in self._rollout(workload).surplus():
            self.delete(pod)

    def _rollout(self, workload: SimulatedWorkload) -> RollingUpdate:
        live = tuple(pod for pod in self.pods_of(workload.name) if _is_active(pod))
        template = self._templates.get(workload.name, 0)
        return RollingUpdate(workload.count, _template(template), live)

    def _count(self, name: str, pod: Object) -> None:
        """Let a Job's pod go that has finished, or that nobody wants any more."""
        finished = objects.is_finished(pod)
        if TRACKING in objects.finalizers(pod) and (finished or name not in self.wanted):
            if objects.status(pod).get("phase") == "Succeeded":
                self.counted[name].add(objects.uid(pod))

            def change(old: Object) -> Object:
                kept = [entry for entry in objects.finalizers(old) if entry != TRACKING]
                return {**old, "metadata": {**old["metadata"], "finalizers": kept}}

            self.cluster.writer.update(kinds.PODS, objects.key(pod), change)

    def _create_pod(self, workload: SimulatedWorkload) -> None:
        number = self._made[workload.name]
        self._made[workload.name] += 1
        if workload.owner is WorkloadOwner.STATEFUL_SET:
            taken = {objects.name(pod) for pod in self.pods_of(workload.name)}
            names = (f"{workload.name}-{ordinal}" for ordinal in range(workload.count))
            name = next(each for each in names if each not in taken)
        else:
            name = f"{workload.name}-{number}"

        try:
            template = _template(self._templates.get(workload.name, 0))
            manifest = admitted(pod(workload, name, template), self.targets, self.failover)
            made = self.cluster.writer.create(kinds.PODS, manifest, NAMESPACE)
        except StatusError as error:
            if error.code != 409:
                raise

            return

        self.made[objects.uid(made)] = objects.key(made)


def _is_active(pod: Object) -> bool:
    return not objects.is_terminating(pod) and not objects.is_finished(pod)


def _leaves_first(pod: Object) -> tuple[bool, bool, int]:
    """Sort pods: those without a node, those that do not run, then those of the lowest cost."""
    cost = int(objects.annotations(pod).get(keys.POD_DELETION_COST, 0))
    return bool(objects.node_name(pod)), _is_running(pod), cost


@dataclass(frozen=True, slots=True)
class RollingUpdate:
    """What the controllers of a Deployment and of its ReplicaSets see: its live pods."""

    count: int
    template: str
    pods: tuple[Object, ...]

    @property
    def _new(self) -> list[Object]:
        return [pod for pod in self.pods if objects.labels(pod).get(_HASH) == self.template]

    @property
    def missing(self) -> int:
        """How many are to be made now; negative for too many of the present template."""
        is_rolling = len(self._new) < len(self.pods)
        most = self.count + (-(-self.count // 4) if is_rolling else 0)
        lacking = self.count - len(self._new)
        return min(lacking, max(0, most - len(self.pods))) if lacking > 0 else lacking

    def surplus(self) -> Objects:
        """List the pods that are to go now: of former templates as many as the update allows."""
        new = self._new
        old = sorted((pod for pod in self.pods if pod not in new), key=_leaves_first)
        least = self.count - self.count // 4
        left = len(self.pods) - least - sum(not _is_running(pod) for pod in new)
        broken = [pod for pod in old if not _is_running(pod)][: max(0, left)]
        left = min(left - len(broken), sum(map(_is_running, self.pods)) - least)
        going = [pod for pod in old if _is_running(pod)][: max(0, left)]
        return [*broken, *going, *sorted(new, key=_leaves_first)[: max(0, len(new) - self.count)]]


def _is_running(pod: Object) -> bool:
    return objects.status(pod).get("phase") == "Running"


def _template(number: int) -> str:
    return f"t{number}"


def pod(workload: SimulatedWorkload, name: str, template: str = "t0") -> Object:
    """Build a pod as its user writes it."""
    devices = {DEVICE: str(workload.devices)} if workload.devices else {}
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": {"cpu": str(workload.cpu), **devices}, "limits": devices},
    }
    spec: Object = {
        "containers": [container],
        "restartPolicy": "Never" if workload.runs else "Always",
        "terminationGracePeriodSeconds": workload.grace,
    }
    if workload.node:
        spec["nodeName"] = target_key(workload.node).node_name

    annotations = {
        keys.ELECT: "",
        RUNS: f"{workload.runs}",
        FAILS: f"{workload.fails}",
        FAREWELL: f"{workload.farewell}",
    }
    metadata: Object = {"name": name, "labels": {APP: workload.name}, "annotations": annotations}
    if workload.owner is WorkloadOwner.JOB:
        metadata["finalizers"] = [TRACKING]

    if workload.owner in _KINDS:
        group, kind = _KINDS[workload.owner]
        owner = workload.name
        if workload.owner is WorkloadOwner.REPLICA_SET:
            owner = f"{owner}-{template}"
            metadata["labels"][_HASH] = template

        reference = {"apiVersion": group, "kind": kind, "name": owner}
        metadata["ownerReferences"] = [{**reference, "uid": f"uid-of-{owner}", "controller": True}]

    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def admitted(manifest: Object, targets: Sequence[str], failover: Failover | None) -> Object:
    """Do to a manifest what an API server and the webhook do with a pod that is created."""
    manifest["spec"].setdefault("tolerations", [dict(each) for each in TOLERATIONS])
    if election.is_exempt(manifest):
        return manifest

    finalizers = [target_key(name).finalizer for name in targets]
    patch = mutate.proxy_patch(manifest, NAMESPACE, finalizers, MANIFESTS, failover=failover)
    proxy: Any = jsonpatch.apply_patch(manifest, patch, in_place=True)
    return proxy
