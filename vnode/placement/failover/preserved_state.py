"""Gives pods what their policy preserves of the pods that they replace, before they go anywhere.

The webhook gives a new pod of such a policy a scheduling gate, so that nothing is made of it in a
target yet. Here one of the pods that vnode has moved, and that no other pod has replaced so far,
is chosen, what is wanted of it becomes annotations of the new one, and the gate is taken off, all
by one patch. Which pods were replaced is written on those that replace them, so that the next
leader goes on. A pod that replaces none only loses its gate.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey, owner_key
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.kube.informer import Informer
from vnode.placement.policies import decoding
from vnode.planning import preserving
from vnode.planning.policy import WatchedPolicies
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.telemetry import audit

TOO_LONG: Final = "StateNotPreserved"
_AT_ONCE: Final = 20  # pods of an owner that are let go before all of its pods are looked at again


class PreservedStates:
    """Runs in the leader.

    `of_owner` returns the proxy pods of a controller; `is_moved` tells whether vnode itself has
    ended one.
    """

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        of_owner: Callable[[OwnerKey], Iterable[Object]],
        is_moved: Callable[[Object], bool],
        policies: WatchedPolicies,
        events: EventRecorder,
    ) -> None:
        self._client = client
        self._proxies = proxies
        self._of_owner = of_owner
        self._is_moved = is_moved
        self._policies = policies
        self._events = events
        self._expectations = Expectations(self._wake)
        # By owner: of two of its pods, the second must see what the first was given.
        self._controller: Controller[OwnerKey] = Controller(
            "preserved-states",
            self._reconcile,
            subject=audit.agent,
            namespace=objects.key_namespace,
        )

    async def run(self) -> None:
        """Give states until cancelled, once all pods and policies are known."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_pod)
        await self._controller.run()

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        """Look at the owner of a pod that has the gate, or had it: others may wait for this one."""
        owner = owner_key(objects.latest(old, new))
        if owner and any(keys.AWAITS_STATE in _gates(pod) for pod in (old, new) if pod):
            self._controller.add(owner)

    def _wake(self, key: str) -> None:
        self._on_pod(None, self._proxies.store.get(key))

    async def _reconcile(self, owner: OwnerKey) -> None:
        """Let some pods of an owner go that have the gate, one after the other.

        The events of these writes have the owner looked at again. Its pods are gone through for
        several at a time: it may have thousands.
        """
        pods = list(self._of_owner(owner))
        if any(self._expectations.pending(objects.key(pod), pod) for pod in pods):
            return  # the event of that write has the owner looked at again

        waiting = (
            pod
            for pod in pods
            if keys.AWAITS_STATE in _gates(pod) and not objects.is_terminating(pod)
        )
        if chosen := list(itertools.islice(waiting, _AT_ONCE)):
            replaced = self._replaced(pods)
            for pod in chosen:
                if await self._let_go(pod, next(iter(replaced), None)):
                    replaced.popleft()

    async def _let_go(self, pod: Object, replaced: Object | None) -> bool:
        """Let a pod go; return whether it has replaced the other one."""
        policy = self._policies.of(pod)
        wanted = policy.failover.preserve if policy is not None and policy.failover else ()
        annotations: dict[str, str] = {}
        if replaced is not None and wanted:
            annotations, too_long = preserving.preserved(wanted, replaced)
            annotations[keys.PRESERVED_FROM] = objects.uid(replaced)
            for annotation in too_long:
                text = (
                    f"{annotation} of pod/{objects.key(replaced)} is not preserved: it has over "
                    f"{preserving.LONGEST} bytes"
                )
                self._events.event(about(pod), WARNING, TOO_LONG, text)

        gates = objects.spec(pod)["schedulingGates"]
        left = [gate for gate in gates if _name(gate) != keys.AWAITS_STATE]
        spec = {"schedulingGates": left or None}
        body = {"metadata": {"annotations": annotations}, "spec": spec}
        subject = decoding.subject_of(policy) if policy else audit.of(kinds.PODS, pod)
        try:
            with audit.on_behalf_of(subject):
                await self._expectations.patch(
                    self._client, kinds.PODS, pod, body, if_unchanged=True
                )
        except NotFound:
            return False

        return bool(annotations)

    def _replaced(self, pods: list[Object]) -> deque[Object]:
        """Return the pods that no other one has replaced, in the order in which they were ended."""
        known = {objects.annotations(pod).get(keys.PRESERVED_FROM) for pod in pods}
        ended = [
            pod
            for pod in pods
            if objects.is_terminating(pod) and objects.uid(pod) not in known and self._is_moved(pod)
        ]
        return deque(sorted(ended, key=_deleted))


def _name(gate: Object) -> str:
    return str(gate.get("name", ""))


def _gates(pod: Object) -> set[str]:
    return {_name(gate) for gate in objects.spec(pod).get("schedulingGates") or ()}


def _deleted(pod: Object) -> tuple[str, str]:
    return str(objects.metadata(pod).get("deletionTimestamp") or ""), objects.uid(pod)
