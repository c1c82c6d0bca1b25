"""The kubelets of a target, and its garbage collector of pods whose chaperon is gone.

A pod that is bound starts, reports, and ends: by itself after a while if it is meant to, or when it
is asked to, within its grace period. A few are rejected at first, as when another scheduler has
given their room away. `running` is the truth about containers, whatever API servers say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tests.apiserver.store import Change
from tests.simulation.clusters import SimulatedCluster
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

RUNS: Final = "example.com/runs"  # seconds until the containers end by themselves
FAILS: Final = "example.com/fails"  # the chance that they fail then
FAREWELL: Final = "example.com/farewell"  # seconds that they take to stop
REJECTION: Final = "Pod was rejected: "
_REJECTED: Final = 0.04  # the chance that a pod is rejected


@dataclass(slots=True)
class PodSimulator:
    """Plays all kubelets of one cluster."""

    cluster: SimulatedCluster
    running: dict[str, str] = field(default_factory=dict)  # UID -> key
    _known: set[str] = field(default_factory=set)  # UIDs of the pods that were taken on
    _stops: dict[str, float] = field(default_factory=dict)  # UID -> when its containers must stop

    def follow(self) -> None:
        """Hear of all changes from now on."""
        self.cluster.server.store.changed.add(self._on_change)

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind is kinds.POD_CHAPERONS and change.old is not None and change.new is None:
            self._collect(objects.uid(change.old))

        if kind is not kinds.PODS or change.new is None:
            return

        pod = change.new
        key, uid = objects.key(pod), objects.uid(pod)
        if change.old is None and not self._has_owner(pod):
            self.cluster.soon(lambda: self._delete(key, uid, None))

        if not objects.spec(pod).get("nodeName"):
            return

        if uid not in self._known:
            self._known.add(uid)
            self.cluster.soon(lambda: self._start(key, uid))

        if objects.is_terminating(pod):
            self._stop_in_time(pod)

    def _collect(self, owner: str) -> None:
        for pod in self.cluster.pods():
            if objects.controller_uid(pod) == owner:
                key, uid = objects.key(pod), objects.uid(pod)
                self.cluster.soon(lambda key=key, uid=uid: self._delete(key, uid, None))

    def _has_owner(self, pod: Object) -> bool:
        owner = objects.controller_uid(pod)
        chaperons = self.cluster.server.store.all(kinds.POD_CHAPERONS)
        return not owner or any(objects.uid(chaperon) == owner for chaperon in chaperons)

    def _delete(self, key: str, uid: str, grace: int | None) -> None:
        if self.cluster.pod(key, uid) is not None:
            options = {} if grace is None else {"gracePeriodSeconds": grace}
            self.cluster.writer.delete(kinds.PODS, key, options)

    def _start(self, key: str, uid: str) -> None:
        pod = self.cluster.pod(key, uid)
        if pod is None or objects.is_terminating(pod):
            return

        annotations = objects.annotations(pod)
        if RUNS in annotations and self.cluster.dice.random() < _REJECTED:
            self._reject(pod)
            return

        self.running[uid] = key
        self._tell(pod, "Normal", "Started")
        state = {"running": {"startedAt": self.cluster.writer.now()}}
        self._report(pod, "Running", state, ready=True)
        if runs := float(annotations.get(RUNS, 0)):
            fails = self.cluster.dice.random() < float(annotations.get(FAILS, 0))
            self.cluster.later(runs, lambda: self._finish(key, uid, 1 if fails else 0))

    def _reject(self, pod: Object) -> None:
        self._tell(pod, "Warning", "OutOfcpu")
        now = self.cluster.writer.now()
        status = {
            "phase": "Failed",
            "reason": "OutOfcpu",
            "message": f"{REJECTION}Node didn't have enough resource: cpu",
            "startTime": now,
        }
        written = {"manager": "kubelet", "subresource": "status", "time": now}

        def change(old: Object) -> Object:
            metadata = {**objects.metadata(old), "managedFields": [written]}
            return {**old, "metadata": metadata, "status": {**objects.status(old), **status}}

        self.cluster.writer.update(kinds.PODS, objects.key(pod), change, subresource="status")

    def _finish(self, key: str, uid: str, code: int) -> None:
        pod = self.cluster.pod(key, uid)
        self.running.pop(uid, None)
        if pod is not None and not objects.is_finished(pod):
            if code:
                self._tell(pod, "Warning", "BackOff")

            terminated = {"exitCode": code, "finishedAt": self.cluster.writer.now()}
            state = {"terminated": terminated}
            self._report(pod, "Failed" if code else "Succeeded", state, ready=False)

    def _stop_in_time(self, pod: Object) -> None:
        key, uid = objects.key(pod), objects.uid(pod)
        metadata, annotations = objects.metadata(pod), objects.annotations(pod)
        grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
        takes = min(grace, float(annotations.get(FAREWELL, 0)))
        now = self.cluster.server.writer._clock.monotonic()
        if now + takes < self._stops.get(uid, float("inf")):
            self._stops[uid] = now + takes
            self.cluster.later(takes, lambda: self.cluster.soon(lambda: self._stop(key, uid)))

    def _stop(self, key: str, uid: str) -> None:
        self._finish(key, uid, 143 if uid in self.running else 137)
        self.cluster.soon(lambda: self._delete(key, uid, 0))

    def _tell(self, pod: Object, type_: str, reason: str) -> None:
        writer = self.cluster.writer
        event = {
            "metadata": {"name": writer.new_uid(), "namespace": objects.namespace(pod)},
            "involvedObject": objects.reference(pod, "Pod", "v1"),
            "type": type_,
            "reason": reason,
            "message": f"of {objects.name(pod)}",
            "source": {"component": "kubelet", "host": objects.node_name(pod)},
            "firstTimestamp": writer.now(),
            "lastTimestamp": writer.now(),
            "count": 1,
        }
        self.cluster.server.add(kinds.EVENTS, event)

    def _report(self, pod: Object, phase: str, state: Object, *, ready: bool) -> None:
        node = str(objects.spec(pod)["nodeName"])
        number = int(objects.uid(pod)[:2], 16)
        status = "True" if ready else "False"
        pod = self.cluster.set_condition(pod, {"type": "Ready", "status": status})
        self.cluster.set_status(
            pod,
            {
                "phase": phase,
                "podIP": f"10.1.0.{number}",
                "podIPs": [{"ip": f"10.1.0.{number}"}],
                "hostIP": f"10.0.0.{len(node)}",
                "containerStatuses": [
                    {
                        "name": container["name"],
                        "image": container["image"],
                        "imageID": "",
                        "ready": ready,
                        "restartCount": 0,
                        "state": state,
                    }
                    for container in objects.spec(pod)["containers"]
                ],
            },
        )
