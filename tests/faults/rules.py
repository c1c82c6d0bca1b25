"""What must be true of all clusters once things have settled: pure.

Each rule is a function from a Snapshot to what is wrong in it. What must be true at every moment is
in `history`; rules about copies are in `followed_objects`, those about Jobs in `jobs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.faults import followed_objects, jobs
from tests.faults.plan import WantedWorkload, WorkloadKind
from tests.faults.snapshot import (
    ALIVE,
    APP,
    VERSION,
    FleetSnapshot,
    Violation,
    node_of,
    phase,
    virtual_node,
)
from vnode.api import keys, names, objects, permissions, placeholders, target_key
from vnode.api.objects import Object


def delegates_have_chaperons(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that each delegate belongs to a chaperon that is there."""
    for cluster, found in snapshot.delegates.items():
        uids = {objects.uid(chaperon) for chaperon in snapshot.chaperons.get(cluster, {}).values()}
        for key, pod in found.items():
            if objects.controller_uid(pod) not in uids:
                yield f"delegate {key} in {cluster} has no chaperon"


def chaperons_have_proxies(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that each chaperon's proxy is there, and is not bound to another cluster.

    The proxy of a placeholder may be bound to another one; a placeholder is never allowed.
    """
    proxies = {objects.uid(pod): pod for pod in snapshot.proxies.values()}
    for cluster, found in snapshot.chaperons.items():
        for key, chaperon in found.items():
            proxy = proxies.get(objects.labels(chaperon).get(keys.PARENT_UID, ""))
            if proxy is None:
                yield f"chaperon {key} in {cluster} has no proxy"
            elif is_placeholder(proxy, cluster):
                if permissions.is_allowed(chaperon):
                    yield f"placeholder {key} in {cluster} is allowed"
            elif node_of(proxy) and node_of(proxy) != virtual_node(cluster):
                yield f"chaperon {key} in {cluster}, but the proxy is on {node_of(proxy)}"


def is_placeholder(proxy: Object, cluster: str) -> bool:
    """Tell whether a proxy's candidate in a cluster stays there while the proxy runs elsewhere."""
    return virtual_node(cluster) in placeholders.of(proxy)


def bound_proxies_have_one_chaperon(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that each bound proxy that has not finished has exactly one allowed chaperon."""
    for key, pod in snapshot.proxies.items():
        if not node_of(pod) or phase(pod) not in ALIVE:
            continue

        found = snapshot.chaperons_of(objects.uid(pod))
        allowed = [c for _cluster, c in found if permissions.is_allowed(c)]
        if len(allowed) != 1:
            yield f"proxy {key} has {len(allowed)} allowed chaperons, of {len(found)}"


def allowed_chaperons_have_delegates(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that each allowed chaperon of a proxy that has not finished has a delegate.

    A proxy's status comes from its delegate: where that was ended, the proxy has yet to follow.
    """
    alive = {objects.uid(pod) for pod in snapshot.proxies.values() if phase(pod) in ALIVE}
    for cluster, found in snapshot.chaperons.items():
        owners = {
            objects.controller_uid(pod) for pod in snapshot.delegates.get(cluster, {}).values()
        }
        for key, chaperon in found.items():
            allowed = permissions.is_allowed(chaperon)
            lives = objects.labels(chaperon).get(keys.PARENT_UID) in alive
            if allowed and lives and objects.uid(chaperon) not in owners:
                yield f"chaperon {key} in {cluster} has no delegate"


def nothing_stays_half_deleted(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that what was asked to end has ended: no finalizer waits for what will not come.

    A pod that is moved waits for the one that replaces it, which may be able to run nowhere.
    """
    for key, pod in snapshot.proxies.items():
        workload = objects.labels(pod).get(APP, "")
        if objects.is_terminating(pod) and not _is_drained_everywhere(snapshot, workload):
            yield f"pod {key} does not end: {objects.finalizers(pod)}"

    for what, clusters in (("chaperon", snapshot.chaperons), ("delegate", snapshot.delegates)):
        for cluster, found in clusters.items():
            for key, obj in found.items():
                if objects.is_terminating(obj):
                    yield f"{what} {key} in {cluster} does not end: {objects.finalizers(obj)}"


def finalizers_are_those_of_targets(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that no pod has a finalizer of a target that is gone.

    That includes a pod that was made before everyone had heard that the target is gone.
    """
    there = {
        names.finalizer("default", objects.name(target)) for target in snapshot.targets.values()
    }
    for key, pod in snapshot.proxies.items():
        for name in objects.finalizers(pod):
            if name.startswith(keys.PREFIX) and name not in there:
                yield f"pod {key} has finalizer {name} of no target"


def nothing_is_left_where_a_target_was(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that a cluster that no Target leads to any more has nothing of its source."""
    for cluster in set(snapshot.delegates) - snapshot.target_names:
        found = [*snapshot.chaperons.get(cluster, ()), *snapshot.delegates.get(cluster, ())]
        found += map(str, snapshot.followed.get(cluster, ()))
        for what in found:
            yield f"{what} is left in {cluster}, which is no target"


def nodes_are_those_of_targets(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that each virtual node has its Target, and each Target its node, which is Ready."""
    wanted = {virtual_node(objects.name(target)) for target in snapshot.targets.values()}
    found = {name: target_key.of_node(node) for name, node in snapshot.nodes.items()}
    ours = {name for name, target in found.items() if target and target.namespace == "default"}
    for name in ours - wanted:
        yield f"node {name} has no Target"

    for name in sorted(wanted):
        ready = objects.condition(snapshot.nodes.get(name, {}), "Ready") or {}
        if ready.get("status") != "True":
            yield f"node {name} is not Ready: {ready.get('message', 'it is not there')}"


def what_is_wanted_runs(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that all pods that can run do, as many and as new as was asked for, and no others.

    A pod that is about to be replaced would be missed in the next step, as if nobody had ended it.
    """
    for workload in snapshot.wish.workloads.values():
        pods = snapshot.of(workload)
        if workload.kind is not WorkloadKind.JOB and _can_run(snapshot, workload):
            states = [f"{objects.name(p)} {phase(p)} on {node_of(p) or '?'}" for p in pods]
            running = [pod for pod in pods if phase(pod) == "Running"]
            if len(running) != workload.replicas or len(pods) != workload.replicas:
                yield f"{workload.name} wants {workload.replicas}, has {states}"

            for pod in pods:
                version = objects.annotations(pod).get(VERSION)
                if version != str(workload.version):
                    yield f"{objects.key(pod)} is v{version}, v{workload.version} is wanted"

    for key, pod in snapshot.proxies.items():
        if objects.labels(pod).get(APP) not in snapshot.wish.workloads:
            yield f"pod {key} is of a workload that was removed"


def _can_run(snapshot: FleetSnapshot, workload: WantedWorkload) -> bool:
    if workload.hopeless or (workload.on and workload.on not in snapshot.target_names):
        return False

    return not _is_drained_everywhere(snapshot, workload.name)


def _is_drained_everywhere(snapshot: FleetSnapshot, workload: str) -> bool:
    """Tell whether a workload's policy drains all targets that there are."""
    there = snapshot.target_names
    return bool(there) and there <= snapshot.drained.get(workload, frozenset())


def rejected_pods_say_why(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that a pod that fits nowhere says so of every target."""
    for workload in snapshot.wish.workloads.values():
        for pod in snapshot.of(workload) if workload.hopeless else ():
            condition = objects.condition(pod, "PodScheduled") or {}
            message = str(condition.get("message", ""))
            if condition.get("status") != "False" or not message.startswith(
                f"0/{len(snapshot.targets)} "
            ):
                yield f"pod {objects.key(pod)} does not say why it waits: {condition}"


def statuses_agree(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that a proxy shows the phase and the address of its delegate."""
    proxies = {objects.uid(pod): (key, pod) for key, pod in snapshot.proxies.items()}
    for cluster, found in snapshot.delegates.items():
        for pod in found.values():
            if not node_of(pod):
                continue

            key, proxy = proxies.get(objects.labels(pod).get(keys.PARENT_UID, ""), ("", {}))
            for field_ in ("phase", "podIP"):
                here, there = objects.status(proxy).get(field_), objects.status(pod).get(field_)
                if key and here != there:
                    yield f"{key} shows {field_} {here}, its delegate in {cluster} has {there}"


def nothing_was_ended_without_reason(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that each pod that nobody touched is still the very same.

    An agent that took a list that failed for an empty one would end it.
    """
    present = {objects.uid(pod) for pod in snapshot.proxies.values()}
    for uid, key in snapshot.survivors.items():
        if uid not in present and uid not in snapshot.excused:
            yield f"pod {key} ({uid}) was ended, and nobody had asked for it"


RULES: tuple[Callable[[FleetSnapshot], Iterator[str]], ...] = (
    delegates_have_chaperons,
    chaperons_have_proxies,
    bound_proxies_have_one_chaperon,
    allowed_chaperons_have_delegates,
    followed_objects.followed_objects_have_users,
    followed_objects.used_objects_are_as_in_the_source,
    nothing_stays_half_deleted,
    finalizers_are_those_of_targets,
    nothing_is_left_where_a_target_was,
    nodes_are_those_of_targets,
    what_is_wanted_runs,
    jobs.jobs_complete,
    jobs.disruptions_fail_no_job,
    rejected_pods_say_why,
    statuses_agree,
    nothing_was_ended_without_reason,
)


def violations(snapshot: FleetSnapshot) -> list[Violation]:
    """Return all violations of the rules in a snapshot."""
    return [
        Violation(rule.__name__.replace("_", " "), what)
        for rule in RULES
        for what in rule(snapshot)
    ]
