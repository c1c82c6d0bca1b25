"""What must be true at every moment, not only when all is quiet: pure, fed with every event.

Three rules. A proxy pod's delegates never run twice: the decision is one, so no second cluster ever
runs one, and in the same cluster not two at once. No pod starts under a name whose earlier pod
still runs, which is what a StatefulSet promises. And nothing is made in a cluster that another
Target stands for, whatever credentials that Target has by now.

Events of two clusters come by two watches, one of which may be late. So the second rule only
suspects; whoever feeds the events asks the cluster whether the earlier pod is really still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.faults.snapshot import ALIVE, Violation, node_of, phase
from vnode.api import keys, objects
from vnode.api.objects import Object

_TAINTED = "DeletionByTaintManager"


@dataclass(frozen=True, slots=True)
class Running:
    """A delegate that is bound and has not finished."""

    cluster: str
    key: str
    uid: str
    parent_uid: str
    parent_key: str
    parent_cluster: str


@dataclass(frozen=True, slots=True)
class Suspicion:
    """`later` started under the name of `earlier`, which had not been seen to end."""

    earlier: Running
    later: Running


@dataclass(slots=True)
class History:
    """What was seen of delegates and proxies since the beginning."""

    running: dict[str, Running] = field(default_factory=dict)  # by UID of the delegate
    placed: dict[str, Running] = field(default_factory=dict)  # by UID of the proxy: the first
    excused: dict[str, str] = field(default_factory=dict)  # UID -> key: ended by others than us
    replaced: dict[str, str] = field(default_factory=dict)  # Target -> cluster in its place for now
    there: frozenset[str] = frozenset()  # nodes whose targets are there all the time, for now
    violations: list[Violation] = field(default_factory=list)
    delegates: int = 0  # that ever ran

    def on_proxy(self, new: Object | None) -> None:
        """Take note that a proxy was changed, or is gone."""
        condition = objects.condition(new or {}, "DisruptionTarget") or {}
        if new is None or condition.get("reason") != _TAINTED:
            return

        if objects.uid(new) not in self.excused and objects.node_name(new) in self.there:
            text = f"{objects.key(new)}: {condition.get('message')}"
            self._violated("a target that is there all the time keeps its pods", text)

        self.excused[objects.uid(new)] = objects.key(new)

    def on_target_gone(self, pod: Object) -> None:
        """Take note that the Target of the node that this proxy is on was removed, or will be."""
        self.excused[objects.uid(pod)] = objects.key(pod)

    def on_chaperon(self, cluster: str, old: Object | None, new: Object | None) -> None:
        """Take note that a chaperon was made or changed.

        A new one must be in the cluster that its Target is named after, or in its replacement.
        """
        target = objects.annotations(new or {}).get(keys.TARGET, "")
        name = objects.split_key(target)[1] if target else cluster
        is_new = old is None and new is not None
        if is_new and cluster not in (name, self.replaced.get(name)):
            text = f"{objects.key(new or {})} of Target {target} is in {cluster}"
            self._violated("nothing is made in another cluster", text)

    def on_delegate(self, cluster: str, old: Object | None, new: Object | None) -> list[Suspicion]:
        """Take note that a delegate was changed, or is gone; return what that makes us suspect."""
        if new is None or not node_of(new) or phase(new) not in ALIVE:
            self.running.pop(objects.uid(new or old or {}), None)
            return []

        if objects.uid(new) in self.running:
            return []

        later = _running(cluster, new)
        suspicions = list(self._start(later))
        self.running[later.uid] = later
        self.delegates += 1
        return suspicions

    def _start(self, later: Running) -> Iterator[Suspicion]:
        first = self.placed.setdefault(later.parent_uid, later)
        if first.cluster != later.cluster:
            text = f"{later.parent_key} ({later.parent_uid}) ran in {first.cluster}"
            self._violated("never two delegates of one proxy", f"{text} and in {later.cluster}")

        for earlier in self.running.values():
            if earlier.parent_uid == later.parent_uid:
                text = f"{earlier.key} and {later.key} in {later.cluster}"
                self._violated("never two delegates of one proxy", text)
            elif (earlier.parent_cluster, earlier.parent_key) == (
                later.parent_cluster,
                later.parent_key,
            ):
                yield Suspicion(earlier, later)

    def confirm(self, suspicion: Suspicion) -> None:
        """Record that a suspicion is true: the cluster says that the earlier delegate is there."""
        earlier, later = suspicion.earlier, suspicion.later
        text = f"{later.parent_key} runs in {later.cluster}, its predecessor in {earlier.cluster}"
        self._violated("no pod starts before its predecessor has stopped", text)

    def _violated(self, rule: str, what: str) -> None:
        self.violations.append(Violation(rule, what))


def _running(cluster: str, pod: Object) -> Running:
    annotations, labels = objects.annotations(pod), objects.labels(pod)
    parent = objects.join_key(
        annotations.get(keys.PARENT_NAMESPACE, ""), annotations.get(keys.PARENT_NAME, "")
    )
    return Running(
        cluster,
        objects.key(pod),
        objects.uid(pod),
        labels.get(keys.PARENT_UID, ""),
        parent,
        labels.get(keys.PARENT_CLUSTER_NAME, ""),
    )
