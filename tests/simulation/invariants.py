"""What must be true once all is well again and things have settled.

Most are those of the random runs on fleets; here is what only a simulation can know: who made which
pod, who ended it, and what is free in a target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.faults import rules
from tests.faults.results import Results
from tests.faults.snapshot import (
    ALIVE,
    SIDECAR,
    FleetSnapshot,
    Violation,
    node_of,
    phase,
    virtual_node,
)
from tests.simulation.clusters import SimulatedCluster
from tests.simulation.kube_scheduler import CandidateScheduler, fits, wanted
from tests.simulation.owners import Controllers
from tests.simulation.placement_rules import PlacementRules
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.pods.event_record import FIELD
from vnode.pods.source.proxy_events import REPORTER

NOTE = "example.com/note"  # an annotation that both sides change
LABEL = "example.com/label"

_SHARED = (
    rules.delegates_have_chaperons,
    rules.chaperons_have_proxies,
    rules.bound_proxies_have_one_chaperon,
    rules.allowed_chaperons_have_delegates,
    rules.nothing_stays_half_deleted,
    rules.finalizers_are_those_of_targets,
    rules.statuses_agree,
    rules.nothing_was_ended_without_reason,
)


@dataclass(frozen=True, slots=True)
class Everything:
    """All that can be looked at."""

    source: SimulatedCluster
    targets: Mapping[str, SimulatedCluster]
    schedulers: Mapping[str, CandidateScheduler]
    owners: Controllers
    placement: PlacementRules
    results: Results
    refuses: bool = False
    """Whether the source's API server refuses requests at times; Events are then lost."""
    all_is_well: bool = False
    """Whether all answered all the time, whatever the taints of virtual nodes say."""

    def env(self) -> FleetSnapshot:
        """See all clusters as the rules of the runs on fleets do."""
        made, ended = self.owners.made, self.owners.touched | self.moved()
        return FleetSnapshot(
            proxies={objects.key(pod): pod for pod in self.source.pods()},
            targets={objects.key(obj): obj for obj in self.source.server.store.all(kinds.TARGETS)},
            chaperons={
                name: {
                    objects.key(obj): obj for obj in cluster.server.store.all(kinds.POD_CHAPERONS)
                }
                for name, cluster in self.targets.items()
            },
            delegates={
                name: {objects.key(pod): pod for pod in cluster.pods()}
                for name, cluster in self.targets.items()
            },
            survivors={uid: key for uid, key in made.items() if uid not in ended},
        )

    def moved(self) -> set[str]:
        """List the UIDs of the pods that vnode itself has evicted, to move them or to replace them.

        Nobody else evicts through the API here: users end pods in the store. Events would not do,
        for an agent may end before it records one.
        """
        evictions = self.source.server.received("create", kinds.PODS, "eviction")
        moved = {each.body["deleteOptions"]["preconditions"]["uid"] for each in evictions}
        return moved | self.failed_over()

    def failed_over(self) -> set[str]:
        """List the UIDs of the pods whose cluster vnode has taken for lost."""
        statuses = self.source.server.received("patch", kinds.PODS, "status")
        return {objects.uid(each.body) for each in statuses if _is_failover(each.body)}


def _is_failover(status: Object) -> bool:
    """Tell whether a patch of status precedes the deletion of a pod of a lost cluster."""
    condition = objects.condition(status, "DisruptionTarget") or {}
    return condition.get("reason") == "DeletionByTaintManager"


def violations(everything: Everything) -> list[Violation]:
    """List all that is wrong."""
    env = everything.env()
    found = [(rule.__name__, what) for rule in _SHARED for what in rule(env)]
    found += [("owners have their pods", what) for what in _missing(everything)]
    found += [("what waits says why", what) for what in _silent(env)]
    found += [("what fits is bound", what) for what in _waiting(everything, env)]
    found += [("both sides agree", what) for what in _disagreeing(env)]
    found += [("results are shown", w) for w in everything.results.not_shown(env.proxies.values())]
    found += [("Events are told on proxies", what) for what in _untold(everything, env)]
    if everything.all_is_well:
        gone = sorted(everything.failed_over())
        found += [("targets that are there keep their pods", what) for what in gone]

    found += everything.placement.at_rest()
    return [Violation(name.replace("_", " "), what) for name, what in found]


def left_over(everything: Everything) -> list[Violation]:
    """List what is there, when nothing should be."""
    env = everything.env()
    found = [f"pod {key}" for key in env.proxies]
    for what, clusters in (("chaperon", env.chaperons), ("delegate", env.delegates)):
        found += [f"{what} {key} in {name}" for name, there in clusters.items() for key in there]

    return [Violation("nothing is left of what was removed", what) for what in found]


def _missing(everything: Everything) -> Iterator[str]:
    owners = everything.owners
    for name, workload in owners.wanted.items():
        if (count := owners.missing(workload)) > 0 and not owners.is_spent(name):
            yield f"{name} lacks {count} of {workload.count}"


def _silent(env: FleetSnapshot) -> Iterator[str]:
    for key, pod in env.proxies.items():
        condition = objects.condition(pod, "PodScheduled") or {}
        message = condition.get("status") == "False" and condition.get("message")
        if not node_of(pod) and not objects.is_terminating(pod) and not message:
            yield f"{key} is neither bound nor says why: {condition}"


def _waiting(everything: Everything, env: FleetSnapshot) -> Iterator[str]:
    for key, pod in env.proxies.items():
        if node_of(pod) or objects.is_terminating(pod):
            continue

        group = everything.placement.group_of(pod)
        for name, scheduler in everything.schedulers.items():
            if group is not None and group.excuses(pod, virtual_node(name)):
                continue

            if any(fits(wanted(pod), left) for left in scheduler.free().values()):
                condition = objects.condition(pod, "PodScheduled") or {}
                yield f"{key} waits, and {name} has room: {condition.get('message')}"


def _disagreeing(env: FleetSnapshot) -> Iterator[str]:
    proxies = {objects.uid(pod): (key, pod) for key, pod in env.proxies.items()}
    for cluster, found in env.delegates.items():
        for pod in found.values():
            key, proxy = proxies.get(objects.labels(pod).get(keys.PARENT_UID, ""), ("", {}))
            if not key or node_of(proxy) != virtual_node(cluster):
                continue

            here, there = _shown(proxy), _shown(pod)
            if here != there:
                yield f"{key} shows {here}, its delegate in {cluster} {there}"

            label = objects.labels(proxy).get(LABEL)
            alive = phase(proxy) in ALIVE
            if alive and label is not None and label not in objects.labels(pod).values():
                yield f"{key} has label {label}, its delegate {objects.labels(pod)}"


def _untold(everything: Everything, env: FleetSnapshot) -> Iterator[str]:
    if everything.refuses:
        return

    events = everything.source.server.store.all(kinds.EVENTS)
    about = {event["involvedObject"]["uid"] for event in events if _is_of_delegate(event)}
    proxies = {objects.uid(pod): pod for pod in env.proxies.values()}
    for cluster, found in env.chaperons.items():
        for chaperon in found.values():
            uid = objects.labels(chaperon).get(keys.PARENT_UID, "")
            here = node_of(proxies.get(uid, {})) == virtual_node(cluster)
            if here and objects.status(chaperon).get(FIELD) and uid not in about:
                yield f"{objects.key(chaperon)} in {cluster} has Events that its proxy has not"


def _is_of_delegate(event: Object) -> bool:
    return bool(event.get("reportingComponent") == REPORTER)


def _shown(pod: Object) -> Object:
    status = objects.status(pod)
    shown = {field: status.get(field) for field in ("phase", "hostIP", "podIPs")}
    for type_ in ("Ready", "PodScheduled"):
        shown[type_] = (objects.condition(pod, type_) or {}).get("status")

    if phase(pod) in ALIVE:
        shown["note"] = objects.annotations(pod).get(NOTE)

    entries = status.get("containerStatuses") or ()
    states = [entry.get("state") for entry in entries if entry.get("name") != SIDECAR]
    return {**shown, "containers": states}
