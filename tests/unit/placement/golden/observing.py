"""What there is to see of pods in a `DeploymentEnvironment`, as its user could see it.

Nothing is asked of the code that is recorded: all is read in API servers, but for `replacements`,
which stands for what would hold a pod back. A pod that may await its replacement is gone after a
second like any other here: placement says that it may, and no more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.unit.placement.golden.deployment import DeploymentEnvironment
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.objects import Object

_DATE: Final = re.compile(r"2026-01-01T(\d\d):(\d\d):(\d\d)Z")
_POD: Final = re.compile(r"^pod/default/[^ :]+: ")


class SeenPod(NamedTuple):
    """What there is to see of a pod."""

    cluster: str = ""
    why: str = ""
    """Why it has its place."""
    is_ready: bool = False
    end: str = ""
    """Who has it terminate, and where; "" while nobody does."""
    placeholders: tuple[str, ...] = ()
    waits_in: tuple[str, ...] = ()
    """The clusters that are asked to take a pod that has none."""
    refusal: str = ""
    """Why it is not scheduled."""


class SeenEvent(NamedTuple):
    """An Event; one that is told of a pod and of its policy is the same but for its object."""

    reason: str
    message: str
    about: str
    name: str
    """Of that object."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What there is to see at one moment."""

    pods: dict[str, SeenPod] = field(default_factory=dict)
    events: dict[str, SeenEvent] = field(default_factory=dict)
    rebalances: dict[str, str] = field(default_factory=dict)

    def counts(self, clusters: Iterable[str]) -> str:
        """Tell how many pods each cluster has, and how many of all are ready."""
        live = [pod for pod in self.pods.values() if not pod.end]
        there = Counter(pod.cluster for pod in live)
        waiting = f"  waiting {there['']}" if there[""] else ""
        ready = sum(pod.is_ready for pod in live)
        per_cluster = "  ".join(f"{name} {there[name]}" for name in clusters)
        return f"= {per_cluster}{waiting}  ({ready} of {len(live)} ready)"


def seen(env: DeploymentEnvironment) -> Observation:
    """Look at everything."""
    pods = {objects.name(pod): _pod(env, pod) for pod in env.server.store.all(kinds.PODS)}
    events = {objects.name(e): _event(env, e) for e in env.server.store.all(kinds.EVENTS)}
    rebalances = {
        objects.name(each): _rebalance(objects.status(each))
        for each in env.server.store.all(kinds.REBALANCES)
    }
    return Observation(pods, events, rebalances)


def _pod(env: DeploymentEnvironment, pod: Object) -> SeenPod:
    name, annotations = objects.name(pod), objects.annotations(pod)
    status = {c["type"]: c for c in objects.status(pod).get("conditions", ())}
    cluster = env.names.get(objects.node_name(pod), "")
    return SeenPod(
        cluster,
        _readable(env, annotations.get(keys.PLACED, "without a reason")),
        status.get("Ready", {}).get("status") == "True",
        _end(env, name, cluster) if objects.is_terminating(pod) else "",
        tuple(sorted(env.names[node] for node in placeholders.of(pod))),
        () if cluster else tuple(sorted(n for n, room in env.room.items() if room.find(name))),
        "" if cluster else _readable(env, status.get("PodScheduled", {}).get("message", "")),
    )


def _end(env: DeploymentEnvironment, name: str, cluster: str) -> str:
    """Return who has asked a pod to end: vnode by an eviction or a deletion, or its owner."""
    place = f"in {cluster}" if cluster else "while it waited"
    awaits = " (may await its replacement)" if name in env.replacements.why else ""
    if name in env.evictions:
        return f"evicted {place}{awaits}"

    is_ours = any(each.name == name for each in env.server.received("delete", kinds.PODS))
    return f"deleted by vnode {place}{awaits}" if is_ours else f"deleted by its owner {place}"


def _event(env: DeploymentEnvironment, event: Object) -> SeenEvent:
    about = event["involvedObject"]
    message = _POD.sub("", _readable(env, str(event["message"])))
    return SeenEvent(event["reason"], message, about["kind"], about["name"])


def _rebalance(status: Object) -> str:
    if not status:
        return "no status"

    counts = f"{status.get('moved', 0)} moved, {status.get('remaining', 0)} left"
    return f'{status.get("phase")} ({counts}), "{status.get("message", "")}"'


def _readable(env: DeploymentEnvironment, text: str) -> str:
    """Name clusters as their users do, not by their virtual nodes, and moments as the log does."""
    for node, name in env.names.items():
        text = text.replace(node, name)

    return _DATE.sub(lambda at: f"{int(at[1]) * 60 + int(at[2])}:{at[3]}", text)
