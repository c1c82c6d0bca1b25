"""What must be true at every moment: fed with each write to any API server as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.apiserver.store import Change
from tests.faults.history import History
from tests.faults.results import Results
from tests.faults.snapshot import SIDECAR, Violation, node_of, phase, virtual_node
from tests.simulation.clusters import SimulatedCluster
from tests.simulation.form_rules import FormRules
from tests.simulation.kubelet import REJECTION, PodSimulator
from tests.simulation.override_policies import MARK
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

_FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Monitor:
    """Remembers what it must, and what was wrong; `trace` has a line for each write, if wanted."""

    source: SimulatedCluster
    targets: Mapping[str, SimulatedCluster]
    kubelets: Mapping[str, PodSimulator]
    is_calm: bool
    forms: FormRules
    trace: list[str] | None = None
    history: History = field(default_factory=History)
    bound: dict[str, str] = field(default_factory=dict)  # UID of a proxy -> its node
    held: set[str] = field(default_factory=set)  # UIDs of chaperons that have had our finalizer
    results: Results = field(default_factory=Results)
    ends: dict[str, str] = field(
        default_factory=dict
    )  # UID of a proxy -> phase its delegate ended in

    def follow(self) -> None:
        """Hear of all changes from now on."""
        self.source.server.store.changed.add(self._on_source)
        for name, cluster in self.targets.items():
            cluster.server.store.changed.add(
                lambda kind, change, name=name: self._on_target(name, kind, change)
            )

    def _wrong(self, rule: str, what: str) -> None:
        self.history.violations.append(Violation(rule, what))
        self.note(f"WRONG {rule}: {what}")

    def note(self, text: str) -> None:
        """Write a line into the trace."""
        if self.trace is not None:
            self.trace.append(f"{asyncio.get_running_loop().time():9.3f} {text}")

    def _note_change(self, cluster: str, kind: Kind, change: Change) -> None:
        if self.trace is None:
            return

        obj = change.new or change.old or {}
        verb = "gone" if change.new is None else "changed" if change.old else "created"
        parts = [cluster, kind.kind, verb, objects.name(obj), objects.uid(obj)[:4]]
        parts += [node_of(obj), phase(obj)]
        scheduled = objects.condition(obj, "PodScheduled") or {}
        parts += [f"PodScheduled={scheduled.get('status')}"] if scheduled else []
        annotations = objects.annotations(obj)
        for key in (
            keys.IS_RESERVED,
            keys.IS_ALLOWED,
            keys.POD_MISSING_SINCE,
            keys.DELEGATE_DELETED,
        ):
            parts += [key.rpartition("/")[2]] if key in annotations else []

        parts += ["terminating"] if objects.is_terminating(obj) else []
        parts += [f"finalizers={len(objects.finalizers(obj))}"]
        self.note(" ".join(filter(None, parts)))

    def _on_source(self, kind: Kind, change: Change) -> None:
        now = asyncio.get_running_loop().time()
        if kind is kinds.OVERRIDE_POLICIES:
            rules: list[Object] = objects.spec(change.new or {}).get("rules") or [{}]
            self.forms.on_policy((rules[0].get("annotations") or {}).get(MARK), now)

        if kind is not kinds.PODS:
            return

        if change.new is not None:
            self.forms.on_proxy(change.new, now)

        self._note_change(self.source.name, kind, change)
        self.history.on_proxy(change.new)
        old, new = change.old, change.new
        uid, key = objects.uid(new or old or {}), objects.key(new or old or {})
        node = node_of(new or {})
        if node and self.bound.setdefault(uid, node) != node:
            self._wrong("a binding is never changed", key)

        before = phase(old or {})
        if new is not None and before in _FINISHED and phase(new) != before:
            self._wrong("a finished pod stays finished", f"{key} {before} to {phase(new)}")

        if old is not None and new is None:
            self._on_proxy_gone(old)

    def _on_proxy_gone(self, proxy: Object) -> None:
        uid, key = objects.uid(proxy), objects.key(proxy)
        if keys.HAS_FINALIZER not in objects.labels(proxy):
            return

        for name, kubelet in self.kubelets.items():
            for pod_uid, pod_key in kubelet.running.items():
                pod = self.targets[name].pod(pod_key, pod_uid)
                if pod is not None and objects.labels(pod).get(keys.PARENT_UID) == uid:
                    self._wrong("a pod goes after its delegate", f"{key} runs in {name}")

        ended = self.ends.get(uid)
        if self.is_calm and ended and phase(proxy) != ended:
            text = f"{key} went as {phase(proxy)}, its delegate ended as {ended}"
            self._wrong("the last status reaches the pod", text)

    def _on_target(self, name: str, kind: Kind, change: Change) -> None:
        if kind is kinds.POD_CHAPERONS:
            self._note_change(name, kind, change)
            self.history.on_chaperon(name, change.old, change.new)
            self._on_chaperon(name, change.old, change.new)
            self.results.on_chaperon(change.new)
        elif kind is kinds.PODS:
            self._note_change(name, kind, change)
            self._on_delegate(name, change.old, change.new)

    def _on_chaperon(self, name: str, old: Object | None, new: Object | None) -> None:
        if new is not None and keys.DELEGATE_FINALIZER in objects.finalizers(new):
            self.held.add(objects.uid(new))

        if new is None:
            owner = objects.uid(old or {})
            if owner not in self.held:
                return

            for uid, key in self.kubelets[name].running.items():
                pod = self.targets[name].pod(key, uid)
                if pod is not None and objects.controller_uid(pod) == owner:
                    self._wrong("a chaperon goes after its delegate", f"{key} runs in {name}")

            return

        was = old is not None and keys.IS_ALLOWED in objects.annotations(old)
        if keys.IS_ALLOWED in objects.annotations(new) and not was:
            parent = objects.labels(new).get(keys.PARENT_UID, "")
            if self.bound.get(parent) != virtual_node(name):
                where = self.bound.get(parent, "no node")
                text = f"{objects.key(new)} in {name}, its pod is on {where}"
                self._wrong("what is allowed was bound before", text)

    def _on_delegate(self, name: str, old: Object | None, new: Object | None) -> None:
        for suspicion in self.history.on_delegate(name, old, new):
            earlier = suspicion.earlier
            if self.targets[earlier.cluster].pod(earlier.key, earlier.uid) is not None:
                self.history.confirm(suspicion)

        if new is None:
            return

        if old is None and all(c["name"] != SIDECAR for c in objects.spec(new)["containers"]):
            self._wrong("a delegate is injected anew", f"{objects.key(new)} in {name}")

        rejected = str(objects.status(new).get("message", "")).startswith(REJECTION)
        if (
            phase(new) in _FINISHED and not rejected
        ):  # it is made anew, and its source hears nothing
            self.ends[objects.labels(new).get(keys.PARENT_UID, "")] = phase(new)

        if node_of(new) and (old is None or not node_of(old)):
            for what in self.forms.wrong(new):
                self._wrong("no delegate is older than its pod when that was bound", what)

            owner = objects.controller_uid(new)
            for chaperon in self.targets[name].server.store.all(kinds.POD_CHAPERONS):
                parent = objects.labels(chaperon).get(keys.PARENT_UID, "")
                allowed = self.bound.get(parent) == virtual_node(name)
                allowed = allowed or keys.IS_ALLOWED in objects.annotations(chaperon)
                if objects.uid(chaperon) == owner and not allowed:
                    self._wrong("what is bound was allowed", f"{objects.key(new)} in {name}")
