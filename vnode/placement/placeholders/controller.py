"""Keeps the placeholders of pods that overflowed: marks them, watches them, and ends them.

The binding of a proxy says where its candidates stay (`vnode.api.placeholders`). From that
annotation follows all else. Here the chaperons of placeholders are marked, so that their targets
hold no place for them. Here nodes are taken out of the annotation where a placeholder is gone, or
where the policy or its plan does not want it any more; `ChaperonGC` then deletes the chaperon.

A placeholder never runs: the proxy controller allows chaperons on the node of their pod only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from vnode.api import keys, kinds, node_labels, objects, permissions, placeholders
from vnode.api.clock import Clock
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.placement.placeholders.openings import PlaceholderOpenings
from vnode.placement.placeholders.plans import PlaceholderPlans
from vnode.placement.placeholders.pods import PlaceholderPods, PlannedPods
from vnode.placement.workload_index import WorkloadIndex
from vnode.planning import placeholders as wanting
from vnode.planning.policy import Policies
from vnode.planning.workload_key import namespace_of, workload_of
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.scheduling.cache import Cache
from vnode.telemetry import audit, metrics

_SETTLED: Final = 2.0  # seconds in which changes of a workload are awaited
_AT_ONCE: Final = 4  # placeholders of one target that are reconciled at once
_TOTAL: Final = 32  # of all targets: a pod may name a hundred


class _Waiting(NamedTuple):
    """A placeholder, or what may be one."""

    node: str
    pod: str


class _Unwanted(NamedTuple):
    """A pod whose policy wants no placeholders."""

    node: str
    uid: str
    pod: str


def _namespace_of(key: _Waiting | PlannedPods | _Unwanted) -> str:
    if isinstance(key, PlannedPods):
        return namespace_of(key.workload)

    return objects.key_namespace(key.pod)


class Placeholders:
    """Runs in the leader; `openings` says where placeholders could start."""

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        nodes: Informer,
        links: Links,
        cache: Cache,
        policies: Policies,
        index: WorkloadIndex,
        clock: Clock,
    ) -> None:
        self.openings = PlaceholderOpenings(proxies.store.get, policies, clock)
        self._client = client
        self._proxies = proxies
        self._nodes = nodes
        self._links = links
        self._policies = policies
        self._index = index
        self._plans = PlaceholderPlans(nodes, cache, clock)
        self._pods = PlaceholderPods()
        self._controller: Controller[Any] = Controller(
            "placeholders",
            self._reconcile,
            subject=audit.agent,
            workers=_AT_ONCE,
            lane=lambda key: key.node,
            namespace=_namespace_of,
            total=_TOTAL,
        )
        self._expectations = Expectations(self._enqueue)
        self._marks = Expectations(self._controller.add)

    async def run(self) -> None:
        """Keep them until cancelled, once all pods are known."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_pod)
        self._index.subscribe(self._on_policy)
        self._nodes.subscribe(self._on_node)
        self._links.subscribe(self._on_link, lambda link: self._enqueue_node(link.node_name))
        await self._controller.run()

    def measure(self) -> Iterator[None]:
        """Set the gauge of placeholders, step by step."""
        counts: dict[tuple[str, ...], int] = {
            (str(link.target),): self._pods.count(link.node_name) for link in self._links
        }
        yield from metrics.PLACEHOLDERS.show(counts)

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        pod = objects.latest(old, new)
        has_any = new is not None and bool(placeholders.of(new))
        if not (has_any or self._pods) or (old and new and _concerns(old) == _concerns(new)):
            return

        key, before = objects.key(pod), self._pods.pop(objects.key(pod))
        if before is not None:
            self._forget(key, before)

        if new is not None and has_any:
            self._pods.put(key, new)
            self._look_at_placeholders(key, new)

        self._check(pod, has_any)

    def _forget(self, key: str, before: Object) -> None:
        """Forget a pod as it was."""
        now = self._proxies.store.get(key) or {}
        left = placeholders.of(now) if objects.uid(now) == objects.uid(before) else ()
        for node in set(placeholders.of(before)).difference(left):
            self.openings.forget(node, objects.uid(before))

    def _look_at_placeholders(self, key: str, pod: Object) -> None:
        """Look at each placeholder of a pod soon; one without a link once there is one."""
        for node in placeholders.of(pod):
            if self._links.get(node) is not None:
                self._controller.add(_Waiting(node, key))

    def _check(self, pod: Object, has_any: bool) -> None:
        """Have the plan of a pod's workload looked at, if there are placeholders in it."""
        policy = self._policies.of(pod)
        if policy is not None and wanting.keeps(policy):
            group = PlannedPods("", workload_of(pod, policy.group_by), policy.group_by)
            if has_any:
                self._pods.join(objects.key(pod), group)

            if group in self._pods.groups:
                self._controller.add_after(group, _SETTLED)
        elif has_any:
            self._controller.add_after(_Unwanted("", objects.uid(pod), objects.key(pod)), _SETTLED)

    def _on_policy(self, pod: Object) -> None:
        """Look at a pod that has another policy now, if it has placeholders."""
        key = objects.key(pod)
        if (found := self._pods.get(key)) is not None:
            self._pods.leave(key)
            self._check(found, True)
            for node in placeholders.of(found):
                self._observe(node, found)

    def _enqueue(self, key: str) -> None:
        if (pod := self._pods.get(key)) is not None:
            self._check(pod, True)
            self._look_at_placeholders(key, pod)

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        if self._pods and _as_planned(old) != _as_planned(new):
            for group in self._pods.groups:
                self._controller.add_after(group, _SETTLED)

    def _on_link(self, link: Link) -> None:
        link.chaperons.subscribe(lambda old, new: self._on_chaperon(link, objects.latest(old, new)))
        link.on_health(lambda: self._enqueue_node(link.node_name))
        self._enqueue_node(link.node_name)

    def _enqueue_node(self, node: str) -> None:
        for key in self._pods.at(node):
            self._controller.add(_Waiting(node, key))

    def _on_chaperon(self, link: Link, chaperon: Object) -> None:
        if self._pods and (pod := self._pods.get(key := parent_key(chaperon))) is not None:
            node = link.node_name
            if node in placeholders.of(pod):
                self._observe(node, pod)
                self._controller.add(_Waiting(node, key))

    def _observe(self, node: str, pod: Object) -> None:
        link = self._links.get(node)
        if link is None:
            self.openings.forget(node, objects.uid(pod))
        else:
            self.openings.observe(link, pod, link.candidate(objects.key(pod), objects.uid(pod)))

    async def _reconcile(self, key: _Waiting | PlannedPods | _Unwanted) -> float | None:
        match key:
            case _Waiting(node, pod):
                await self._keep(key, node, pod)
            case PlannedPods():
                return await self._compare(key)
            case _Unwanted(_, _, name) if (found := self._pods.get(name)) is not None:
                if not wanting.keeps(self._policies.of(found)):
                    await self._write(found, ())

        return None

    async def _keep(self, place: _Waiting, node: str, key: str) -> None:
        """Mark the chaperon of a placeholder; strike it off the pod if there is none."""
        pod, link = self._pods.get(key), self._links.get(node)
        if pod is None or node not in placeholders.of(pod):
            self._marks.forget(place)
            return

        self._observe(node, pod)
        if link is None or not link.synced or not link.answers:
            return  # the link, or its health, has it looked at again

        chaperon = link.candidate(key, objects.uid(pod))
        if chaperon is None or objects.is_terminating(chaperon) or permissions.is_allowed(chaperon):
            await self._write(pod, [name for name in placeholders.of(pod) if name != node])
            return

        is_marked = keys.PLACEHOLDER in objects.annotations(chaperon)
        if not is_marked and not self._marks.pending(place, chaperon):
            annotations = {keys.PLACEHOLDER: "true"}
            body = {"metadata": {"uid": objects.uid(chaperon), "annotations": annotations}}
            with audit.on_behalf_of(audit.of(kinds.PODS, pod)):
                await self._marks.patch(link.client, kinds.POD_CHAPERONS, chaperon, body, key=place)

    async def _compare(self, key: PlannedPods) -> float | None:
        """Remove the placeholders of a workload that its plan has not wanted for a while."""
        sample = next(self._pods.of(key), None)
        policy = self._policies.of(sample) if sample is not None else None
        if sample is None or policy is None or not wanting.keeps(policy):
            self._plans.forget(key)
            return None

        await self._plans.count(sample, policy)
        verdict = self._plans.compare(key, sample, policy)
        for pod, kept in verdict.fewer:
            await self._write(pod, kept)

        return verdict.again

    async def _write(self, pod: Object, nodes: Iterable[str]) -> None:
        key = objects.key(pod)
        current = self._proxies.store.get(key)
        if current is None or objects.uid(current) != objects.uid(pod):
            return

        if not self._expectations.pending(key, current):
            annotations = {keys.PLACEHOLDERS: placeholders.text(nodes)}
            metadata = {"uid": objects.uid(pod), "annotations": annotations}
            with audit.on_behalf_of(audit.of(kinds.PODS, current)):
                await self._expectations.patch(
                    self._client, kinds.PODS, current, {"metadata": metadata}
                )


def _concerns(pod: Object) -> tuple[object, ...]:
    """Return what placeholders depend on."""
    return (
        objects.uid(pod),
        objects.node_name(pod),
        objects.is_terminating(pod),
        objects.is_finished(pod),
        objects.labels(pod),
        objects.annotations(pod).get(keys.PLACEHOLDERS),
    )


def _as_planned(node: Object | None) -> tuple[object, ...]:
    """Return what plans depend on of a virtual node."""
    if node is None:
        return ()

    return node_labels.of_node(node), bool(objects.spec(node).get("unschedulable"))
