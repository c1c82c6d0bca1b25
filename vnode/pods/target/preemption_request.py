"""Reads what the candidate scheduler asks before it preempts, and forms the answer.

A request has whole pods: those that would end, by node. Anybody in the cluster may have made them.
So each is decoded by itself, only the few fields that count, and everything else in the event loop
has its turn in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from vnode.api import documents, keys, names
from vnode.api.clock import Clock
from vnode.api.slices import Slices
from vnode.pods import preemption
from vnode.pods.preemption import Victims

MOST_BYTES: Final = 32 * 1024 * 1024
"""Of a request: 4,000 pods of 8 KiB. Where one ends and the next begins is found at once, which
takes up to 45 ms if somebody has made pods of nothing but empty arguments."""


class _SentOwner(msgspec.Struct):
    uid: str = ""
    controller: bool | None = None


class _SentLabels(msgspec.Struct, frozen=True):
    cluster_uid: str = msgspec.field(name=keys.PARENT_CLUSTER_UID, default="")
    cluster_name: str = msgspec.field(name=keys.PARENT_CLUSTER_NAME, default="")
    proxy_uid: str = msgspec.field(name=keys.PARENT_UID, default="")

    @property
    def source(self) -> tuple[str, str]:
        """The UID and the name of the cluster that has sent the pod."""
        return self.cluster_uid, self.cluster_name


class _SentAnnotations(msgspec.Struct, frozen=True):
    preemption: str = msgspec.field(name=keys.PREEMPTION, default="")


class SentMetadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    labels: _SentLabels | None = None
    annotations: _SentAnnotations | None = None
    owner_references: list[_SentOwner] | None = None


class SentPod(msgspec.Struct):
    metadata: SentMetadata


class _VictimMetadata(msgspec.Struct):
    uid: str = ""
    labels: _SentLabels | None = None


class _VictimSpec(msgspec.Struct, frozen=True):
    priority: int | None = None


class _Victim(msgspec.Struct):
    metadata: _VictimMetadata
    spec: _VictimSpec = _VictimSpec()


class _SentVictims(msgspec.Struct):
    pods: list[msgspec.Raw] | None = msgspec.field(name="Pods", default=None)
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


class _SentRequest(msgspec.Struct):
    pod: SentPod = msgspec.field(name="Pod")
    victims: dict[str, _SentVictims] | None = msgspec.field(name="NodeNameToVictims", default=None)


class NodeVictims(NamedTuple):
    """The pods that would end on one node, and how many of them a budget protects."""

    pods: list[_Victim]
    violations: int


class PreemptionRequest(NamedTuple):
    """What counts of an ExtenderPreemptionArgs of k8s.io/kube-scheduler/extender/v1."""

    pod: SentPod
    victims: dict[str, NodeVictims]


_request: Final = msgspec.json.Decoder(_SentRequest)
_victim: Final = msgspec.json.Decoder(_Victim)


async def parse(payload: bytes, clock: Clock) -> PreemptionRequest | None:
    """Return the request, None if it is none."""
    slices = Slices(clock)
    found: dict[str, NodeVictims] = {}
    try:
        sent = _request.decode(payload)
        for node, each in (sent.victims or {}).items():
            pods = []
            for pod in each.pods or ():
                pods.append(_victim.decode(pod))
                await slices.give_way()

            found[node] = NodeVictims(pods, max(0, each.violations))
    except documents.NO_JSON:
        return None

    meta = sent.pod.metadata
    named = names.LABEL.fullmatch(meta.namespace) and names.SUBDOMAIN.fullmatch(meta.name)
    return PreemptionRequest(sent.pod, found) if named else None


def least(request: PreemptionRequest) -> tuple[str, Victims] | None:
    """Return the node with the least harm, and its victims; None if there are none.

    Of the delegates among them those are named that the pod's own source has sent: what others have
    here is none of its business.
    """
    source = _labels(request.pod.metadata).source
    found = {
        node: preemption.victims(
            [pod.spec.priority or 0 for pod in each.pods],
            each.violations,
            _proxies(each.pods, source),
        )
        for node, each in request.victims.items()
        if each.pods
    }
    return min(found.items(), key=lambda item: item[1].harm()) if found else None


def _proxies(pods: Iterable[_Victim], source: tuple[str, str]) -> list[str]:
    """Return the UIDs of the proxies whose delegates are among these pods, of one source."""
    sent = (_labels(pod.metadata) for pod in pods)
    return [labels.proxy_uid for labels in sent if labels.proxy_uid and labels.source == source]


def _labels(meta: SentMetadata | _VictimMetadata) -> _SentLabels:
    return meta.labels or _SentLabels()


def go_on(request: PreemptionRequest, only: str | None = None) -> dict[str, Any]:
    """Return the ExtenderPreemptionResult that lets the scheduler go on, on one node if given."""
    nodes = {
        node: {
            "Pods": [{"UID": pod.metadata.uid} for pod in each.pods],
            "NumPDBViolations": each.violations,
        }
        for node, each in request.victims.items()
        if only in (None, node)
    }
    return {"NodeNameToMetaVictims": nodes}
