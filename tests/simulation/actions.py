"""Carries out what users of the source do, and administrators of targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.simulation.clusters import SimulatedCluster
from tests.simulation.invariants import LABEL, NOTE
from tests.simulation.owners import Controllers
from tests.simulation.schedule import PodAction, PodVerb
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

_EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


@dataclass(frozen=True, slots=True)
class Users:
    """Does one action at a time, at once; what it needs may be missing, then nothing happens."""

    source: SimulatedCluster
    targets: Mapping[str, SimulatedCluster]
    owners: Controllers
    note: Callable[[str], None]

    def act(self, action: PodAction) -> None:
        """Do something to one of the things that are there."""
        match action.verb:
            case PodVerb.REMOVE:
                if names := sorted(self.owners.wanted):
                    name = names[action.number % len(names)]
                    self.note(f"---- {action.verb} {name}")
                    self.owners.remove(name)
            case PodVerb.DELETE_DELEGATE | PodVerb.EVICT_DELEGATE | PodVerb.ANNOTATE_DELEGATE:
                self._on_target(action, kinds.PODS)
            case PodVerb.CLEAN_UP:
                self._clean_up(action)
            case PodVerb.DELETE_CHAPERON:
                self._on_target(action, kinds.POD_CHAPERONS)
            case _:
                if pods := self.source.pods():
                    self._on_pod(action, pods[action.number % len(pods)])

    def _on_pod(self, action: PodAction, pod: Object) -> None:
        self.note(f"---- {action.verb} {objects.key(pod)}")
        match action.verb:
            case PodVerb.DELETE:
                self.owners.delete(pod)
            case PodVerb.FORCE_DELETE:
                self.owners.delete(pod, 0)
            case PodVerb.EVICT:
                self.source.set_condition(pod, _EVICTED)
                self.owners.delete(pod)
            case PodVerb.ANNOTATE:
                _mark(self.source, pod, "annotations", NOTE, f"source-{action.number}")
            case PodVerb.LABEL:
                _mark(self.source, pod, "labels", LABEL, f"label-{action.number}")
            case PodVerb.SET_IMAGE:
                _set(self.source, pod, "", image=f"busybox:{action.number}")
            case PodVerb.RESIZE if not objects.node_name(pod):
                requests = {"cpu": str(1 + action.number % 2)}
                _set(self.source, pod, "resize", resources={"requests": requests})

    def _clean_up(self, action: PodAction) -> None:
        """Delete what has finished in the targets, as people and controllers there do.

        A result that the target's agent has not told by then may be lost, if it was away.
        """
        for cluster in self.targets.values():
            for pod in filter(objects.is_finished, [] if cluster.down else cluster.pods()):
                self.note(f"---- {action.verb}: {objects.key(pod)} in {cluster.name}")
                chaperon = cluster.server.store.get(kinds.POD_CHAPERONS, objects.key(pod)) or {}
                if not objects.is_finished(chaperon):
                    self.owners.touched.add(objects.labels(pod).get(keys.PARENT_UID, ""))

                cluster.writer.delete(kinds.PODS, objects.key(pod))

    def _on_target(self, action: PodAction, kind: Kind) -> None:
        there = [
            (cluster, obj)
            for cluster in self.targets.values()
            for obj in cluster.server.store.all(kind)
            if not cluster.down
        ]
        if not there:
            return

        cluster, obj = there[action.number % len(there)]
        self.note(f"---- {action.verb} {objects.key(obj)} in {cluster.name}")
        if action.verb is PodVerb.ANNOTATE_DELEGATE:
            _mark(cluster, obj, "annotations", NOTE, f"target-{action.number}")
            return

        self.owners.touched.add(objects.labels(obj).get(keys.PARENT_UID, ""))
        if action.verb is PodVerb.EVICT_DELEGATE:
            cluster.set_condition(obj, _EVICTED)

        cluster.writer.delete(kind, objects.key(obj))


def _set(cluster: SimulatedCluster, pod: Object, subresource: str, **fields: object) -> None:
    """Set fields of the only container."""

    def change(old: Object) -> Object:
        (container,) = objects.spec(old)["containers"]
        return {**old, "spec": {**objects.spec(old), "containers": [{**container, **fields}]}}

    cluster.writer.update(kinds.PODS, objects.key(pod), change, subresource=subresource)


def _mark(cluster: SimulatedCluster, pod: Object, field: str, key: str, value: str) -> None:
    """Set a label or an annotation."""

    def change(old: Object) -> Object:
        entries = {**(old["metadata"].get(field) or {}), key: value}
        return {**old, "metadata": {**old["metadata"], field: entries}}

    cluster.writer.update(kinds.PODS, objects.key(pod), change)
