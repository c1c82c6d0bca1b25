"""Runs the binding cycle: from a reserved place in a target to a proxy bound to its virtual node.

Reserve, Permit, PreBind, Bind, PostBind, as kube-scheduler has them. The built-in binding is the
decision (docs/decisions/0002). Whatever goes wrong on the way undoes what Reserve plugins did.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from vnode.api import keys, kinds, names, node_labels, objects, placeholders, renaming, route
from vnode.api.clock import Clock
from vnode.api.errors import Conflict, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods.reservations import Refusal
from vnode.pods.source import candidates, proxy_state
from vnode.pods.source.candidates import CandidateState
from vnode.runtime.finishing import finish
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.scheduling.binding_cycle import BindingCycle
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.status import SUCCESS, Status, unschedulable
from vnode.telemetry import metrics

_PLACES: Final = tuple(renaming.NODE_LABELS + name for name in ("zone", "region"))
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

_ANSWER: Final = 5.0
"""Seconds that the end of a term waits for a binding: as long as a Lease lasts once it is lost."""

_TRIES: Final = 3
"""Versions of a pod for which a binding is tried; then its next attempt goes on."""

Bind = Callable[[Object], Awaitable[bool]]
"""Has a version of a pod bound; False if there is none such to be bound."""

IsCurrent = Callable[[Object], bool]
"""Tells whether the candidate that has a place is this version of the pod."""

log = logging.getLogger(__name__)


class PodChanged(VnodeError):
    """Reports that a pod is not bound, since its candidate is of a former version."""


class Binder:
    """Binds pods that are assumed on a node; the caller that assumed one undoes that.

    `lookup` returns the present proxy of a key; `allowed` returns when a delegate's own source lets
    it be bound, or raises Refusal.
    """

    def __init__(
        self,
        client: Client,
        links: Links,
        cycle: BindingCycle,
        *,
        lookup: Callable[[str], Object | None],
        allowed: Callable[[Object], Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._client = client
        self._links = links
        self._cycle = cycle
        self._lookup = lookup
        self._allowed = allowed
        self._clock = clock

    async def bind(
        self, queued: QueuedPod, node: str, state: CycleState, is_current: IsCurrent
    ) -> bool:
        """Bind the pod to the node; False if it is rejected or gone.

        May raise VnodeError: PodChanged if it is another by now than what the target has.
        """
        pod, started, bound = queued.pod, self._clock.monotonic(), False
        try:
            bound = await self._run(pod, node, state, is_current)
        finally:
            taken = self._clock.monotonic() - started
            metrics.BINDING_SECONDS.labels("bound" if bound else "failed").observe(taken)
            if not bound:
                self._cycle.unreserve(state, pod, node)

        if bound:
            metrics.SCHEDULING_ATTEMPTS.labels("bound").inc()
            metrics.POD_BOUND_SECONDS.observe(self._clock.monotonic() - queued.added)
            self._cycle.post_bind(state, pod, node)

        return bound

    async def _run(self, pod: Object, node: str, state: CycleState, is_current: IsCurrent) -> bool:
        status = self._cycle.reserve(state, pod, node)
        if status.is_success:
            status = await self._cycle.permit(state, pod, node)

        if status.is_success and route.is_delegate(pod):
            status = await self._allow(pod)

        if status.is_success:
            status = await self._cycle.pre_bind(state, pod, node)

        if status.is_success:
            status = await self._cycle.bind(state, pod, node)
            if status.is_skip:
                outcome = state.outcome
                reason = outcome.explain(node)
                annotations = {keys.PLACED: reason} if reason else {}
                annotations |= outcome.annotations(node)
                better = outcome.better.get(node, ())
                return await self._hold_and_bind(pod, node, annotations, better, is_current)

            if status.is_success:
                return True

        if status.is_rejected:
            log.info(
                "%s rejects %s on %s: %s", status.plugin, objects.key(pod), node, status.message
            )

        return False

    async def _allow(self, pod: Object) -> Status:
        """Wait for a delegate's own source: its place in the next cluster is its place here."""
        try:
            await self._allowed(pod)
        except Refusal as refusal:
            return unschedulable(str(refusal)).with_plugin("its source")

        return SUCCESS

    async def _hold_and_bind(
        self,
        pod: Object,
        node: str,
        annotations: Mapping[str, str],
        better: Iterable[str],
        is_current: IsCurrent,
    ) -> bool:
        link = self._links.get(node)
        now = self._lookup(objects.key(pod))
        if now is not None and objects.uid(now) == objects.uid(pod):
            pod = now  # `stale_finalizers` may have removed a finalizer since

        held = await hold(self._client, pod, link.target.finalizer) if link is not None else None
        if held is None:
            return False

        waiting = [other for other in better if self._waits(pod, other)]
        if waiting or keys.PLACEHOLDERS in objects.annotations(pod):  # a user may have written it
            annotations = {**annotations, keys.PLACEHOLDERS: placeholders.text(waiting) or ""}

        places = places_of(link) if link is not None else {}

        def bind(version: Object) -> Awaitable[bool]:
            return create_binding(self._client, version, node, annotations, places)

        return await self._bind_unchanged(held, bind, is_current)

    async def _bind_unchanged(self, pod: Object, bind: Bind, is_current: IsCurrent) -> bool:
        """Bind the version of the pod that `is_current` was asked about, and no other.

        What has changed since may be a status that somebody wrote: then the next version is bound.
        """
        for _ in range(_TRIES):
            if not is_current(pod):
                break

            if await bind(pod):
                return True

            live = await self._live(pod)
            if live is None or objects.resource_version(live) == objects.resource_version(pod):
                return False

            pod = live

        raise PodChanged("it has changed, or its override policies have; its candidate has not")

    async def _live(self, pod: Object) -> Object | None:
        """Return the pod as the API server has it; None if it is not to be bound any more."""
        try:
            live = await self._client.get(kinds.PODS, objects.name(pod), objects.namespace(pod))
        except NotFound:
            return None

        return live if proxy_state.is_pending(live, objects.uid(pod)) else None

    def _waits(self, pod: Object, node: str) -> bool:
        """Tell whether the pod leaves a candidate on the node: there is no room for it there."""
        link = self._links.get(node)
        found = link.candidate(objects.key(pod), objects.uid(pod)) if link is not None else None
        if link is None or found is None or objects.is_terminating(found):
            return False

        is_rejected = candidates.read(found, 0.0).state is CandidateState.REJECTED
        return is_rejected and leaves_placeholder(pod, link)


def leaves_placeholder(pod: Object, link: Link) -> bool:
    """Tell whether nobody is hurt by a placeholder of the pod.

    For one that may be sent on, a place would be held in the next cluster. One that may preempt
    would have others end in its favour, but vnode in the target sees to that.
    """
    spec = objects.spec(pod)
    preempts = int(spec.get("priority") or 0) > 0 and spec.get("preemptionPolicy") != "Never"
    return keys.FORWARD not in objects.annotations(pod) and (link.runs_vnode or not preempts)


async def hold(client: Client, pod: Object, finalizer: str) -> Object | None:
    """Add the finalizer, so that the pod cannot vanish before its delegate.

    Return the pod as it is then, None if it is gone.

    The webhook has done so, but for pods that are older than their Target. Raises Conflict if the
    pod has changed since it was read; then try again.
    """
    present = objects.finalizers(pod)
    if finalizer in present:
        return pod

    body = objects.finalizers_patch(pod, [*present, finalizer])
    body["metadata"]["labels"] = {keys.HAS_FINALIZER: "true"}
    try:
        return await client.patch(kinds.PODS, objects.name(pod), body, objects.namespace(pod))
    except NotFound:
        return None


def places_of(link: Link) -> dict[str, str]:
    """Return zone and region of a target, if its nodes are all in one.

    The API server copies those of a Node to the pods that are bound to it. A virtual Node does not
    have them itself (`vnode.api.node_labels`), so the Binding has. Left out is what the Target does
    not let its nodes choose, and what cannot be a label's value: the pod would not be bound.
    """
    labels, excluded = objects.labels(link.summary or {}), link.labels_excluded
    return {
        key: labels[key]
        for key in _PLACES
        if names.LABEL_VALUE.fullmatch(labels.get(key, ""))
        and node_labels.is_listed(key, link.options.label_domains)
        and not (excluded and excluded(f"{key}={labels[key]}"))
    }


async def create_binding(
    client: Client,
    pod: Object,
    node: str,
    annotations: Mapping[str, str] = _NOTHING,
    labels: Mapping[str, str] = _NOTHING,
) -> bool:
    """Bind a proxy pod: the decision. False if the pod is gone, bound, being deleted, or changed.

    The API server copies annotations and labels of a Binding to the pod: they cost no request. If
    cancelled, this waits for the answer: whoever leads next must find the pod as it is to be.
    """
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": objects.name(pod),
            "uid": objects.uid(pod),
            **({"resourceVersion": version} if (version := objects.resource_version(pod)) else {}),
            **({"annotations": dict(annotations)} if annotations else {}),
            **({"labels": dict(labels)} if labels else {}),
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    try:
        request = client.create(
            kinds.PODS,
            binding,
            objects.namespace(pod),
            name=objects.name(pod),
            subresource="binding",
        )
        await finish(request, f"binding of {objects.key(pod)}", _ANSWER)
    except (NotFound, Conflict) as error:
        log.info("pod %s was not bound to %s: %s", objects.key(pod), node, error.message)
        return False

    return True
