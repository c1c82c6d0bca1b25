"""Answers the candidate scheduler when a delegate could preempt other pods.

kube-scheduler has found on which nodes, and whom. If the source only asks, the best of these nodes
is written to the chaperon, and the scheduler is told that there is none; else it may go on, on that
node, where a nominated pod then keeps the room (`nominations`). The chaperon is written before the
answer, so that the source reads it with the rejection at the latest, and no round is forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from vnode.api import documents, keys, kinds, names, objects, permissions
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods import preemption
from vnode.pods.preemption import Victims
from vnode.pods.target.nominations import Nominations
from vnode.telemetry import audit

MOST_BYTES = 64 * 1024 * 1024
"""Of a request: it has whole pods, those that may go on each of a hundred nodes or more."""

_NOWHERE: Final[dict[str, Any]] = {"NodeNameToMetaVictims": {}}

log = logging.getLogger(__name__)


class _SentOwner(msgspec.Struct):
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class _SentMetadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_SentOwner] | None = None


class _SentSpec(msgspec.Struct, frozen=True):
    priority: int | None = None


class _SentPod(msgspec.Struct):
    metadata: _SentMetadata
    spec: _SentSpec = _SentSpec()


class _SentVictims(msgspec.Struct):
    pods: list[_SentPod] | None = msgspec.field(name="Pods", default=None)
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


class PreemptionRequest(msgspec.Struct):
    """An ExtenderPreemptionArgs of k8s.io/kube-scheduler/extender/v1."""

    pod: _SentPod = msgspec.field(name="Pod")
    victims: dict[str, _SentVictims] | None = msgspec.field(name="NodeNameToVictims", default=None)


def parse(payload: bytes) -> PreemptionRequest | None:
    """Return the request, None if it is none."""
    try:
        request = msgspec.json.decode(payload, type=PreemptionRequest)
    except documents.NO_JSON:
        return None

    meta = request.pod.metadata
    named = names.LABEL.fullmatch(meta.namespace) and names.SUBDOMAIN.fullmatch(meta.name)
    return request if named else None


def least(request: PreemptionRequest) -> tuple[str, Victims] | None:
    """Return the node with the least harm, and its victims; None if there are none.

    Of the delegates among them those are named that the pod's own source has sent: what others have
    here is none of its business.
    """
    source = _source(request.pod)
    found = {
        node: preemption.victims(
            [pod.spec.priority or 0 for pod in each.pods],
            max(0, each.violations),
            _proxies(each.pods, source),
        )
        for node, each in (request.victims or {}).items()
        if each.pods
    }
    return min(found.items(), key=lambda item: item[1].harm()) if found else None


def _proxies(pods: Iterable[_SentPod], source: tuple[str, str]) -> list[str]:
    """Return the UIDs of the proxies whose delegates are among these pods, of one source."""
    sent = (_labels(pod) for pod in pods if _source(pod) == source)
    return [uid for labels in sent if (uid := labels.get(keys.PARENT_UID))]


def _source(pod: _SentPod) -> tuple[str, str]:
    """Return the UID and the name of the cluster that has sent a pod."""
    labels = _labels(pod)
    return labels.get(keys.PARENT_CLUSTER_UID, ""), labels.get(keys.PARENT_CLUSTER_NAME, "")


def _labels(pod: _SentPod) -> dict[str, str]:
    return pod.metadata.labels or {}


def go_on(request: PreemptionRequest, only: str | None = None) -> dict[str, Any]:
    """Return the ExtenderPreemptionResult that lets the scheduler go on, on one node if given."""
    nodes = {
        node: {
            "Pods": [{"UID": pod.metadata.uid} for pod in each.pods or ()],
            "NumPDBViolations": each.violations,
        }
        for node, each in (request.victims or {}).items()
        if only in (None, node)
    }
    return {"NodeNameToMetaVictims": nodes}


class Preempting:
    """Answers `preempt`."""

    def __init__(self, client: Client, chaperons: Informer, clock: Clock) -> None:
        self._client = client
        self._chaperons = chaperons
        self._clock = clock
        self._nominations = Nominations(client)

    async def answer(self, request: PreemptionRequest) -> dict[str, Any]:
        """Let the delegate preempt, or tell its source what that would cost, and no more.

        What no chaperon controls is never bound, so that nobody is to end for it: whoever names
        this scheduler in a pod of their own would have others preempted again and again.
        """
        meta = request.pod.metadata
        owner = next((o.uid for o in meta.owner_references or () if o.controller), "")
        key = objects.join_key(meta.namespace, meta.name)
        chaperon: Object = self._chaperons.store.get(key) or {}
        if objects.uid(chaperon) != owner:  # this replica has not seen it yet
            chaperon = {}

        subject = audit.of_chaperon(key, chaperon, uid=owner)
        if not owner or keys.PLACEHOLDER in objects.annotations(chaperon):  # it will not run here
            return _NOWHERE

        cheapest = least(request)
        # One that is allowed to run has its proxy here for good: it asks nobody any more.
        decided = permissions.is_allowed(chaperon)
        if decided or (meta.annotations or {}).get(keys.PREEMPTION) != preemption.ASKS:
            if cheapest is None:
                return go_on(request)

            node, _victims = cheapest
            with audit.on_behalf_of(subject):
                may_go_on = await self._begin(meta, owner, chaperon, node)

            return go_on(request, node) if may_go_on else _NOWHERE

        if cheapest is not None:
            text = preemption.encode(cheapest[1])
            if text != objects.annotations(chaperon).get(keys.VICTIMS):
                with audit.on_behalf_of(subject):
                    await self._annotate(meta, owner, {keys.VICTIMS: text})

        return _NOWHERE

    async def _begin(self, meta: _SentMetadata, owner: str, chaperon: Object, node: str) -> bool:
        """Note that others are preempted on a node, and have the room kept; False if they stay."""
        rounds, now = preemption.rounds(chaperon), self._clock.now()
        if not rounds.may_go_on(now):
            log.info("%s/%s has to pause: others took the room", meta.namespace, meta.name)
            return False

        noted = {keys.PREEMPTED: rounds.next(node, now).encode()}
        if not await self._annotate(meta, owner, noted):
            return False

        await self._nominations.keep(meta.namespace, meta.name, owner, node)
        return True

    async def _annotate(self, meta: _SentMetadata, owner: str, noted: dict[str, str]) -> bool:
        body = {"metadata": {"uid": owner, "annotations": noted}}
        try:
            await self._client.patch(kinds.POD_CHAPERONS, meta.name, body, meta.namespace)
        except VnodeError as error:
            log.info("%s/%s may not preempt: %s", meta.namespace, meta.name, error)
            return False

        return True
