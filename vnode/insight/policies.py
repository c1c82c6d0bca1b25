"""Reads policies for people: which one a pod has, and what came of each. No I/O.

All of it stands in the objects: `spec` says what is wanted, `status` what the agent makes of it. So
whoever may read the policies sees the same, in a terminal or in a browser.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from vnode.api import objects, visible
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.overrides import conditions
from vnode.overrides import policy as override_policy
from vnode.placement.policies import decoding
from vnode.placement.policies.judging import ACCEPTED
from vnode.placement.policies.matching import PolicyIndex
from vnode.placement.status.conditions import CLUSTERS_FOUND, CLUSTERS_READY, DECIDED, PUBLISHED
from vnode.planning.policy import Mode, Policy
from vnode.planning.workload_key import workload_of

_MOST_CLUSTERS: Final = 20  # that a line names


@dataclass(frozen=True, slots=True)
class ShownCluster:
    """One cluster's part of a workload, as the status has it; None: there is no plan."""

    cluster: str
    planned: int | None
    running: int
    waiting: int
    no_moves_until: str = ""
    """No pod is moved there before, since one was in vain; "": that is not so."""


@dataclass(frozen=True, slots=True)
class ShownWorkload:
    """A workload, as the status of its policy has it."""

    workload: str
    replicas: int
    unplaced: int
    clusters: tuple[ShownCluster, ...]


@dataclass(frozen=True, slots=True)
class ShownPolicy:
    """A policy with what came of it; `name` is as kubectl writes it, `message` names the cure."""

    name: str
    namespace: str
    mode: str
    is_accepted: bool
    reason: str
    message: str
    workload_count: int
    replicas: int
    workloads: tuple[ShownWorkload, ...]
    policy: Policy | None
    """None if it cannot be read."""
    undecided: str = ""
    """What is wrong with the decision that it follows; "": nothing."""


@dataclass(frozen=True, slots=True)
class ShownOverride:
    """An override policy with its conditions; `message` names the cure if it `is_good` not."""

    name: str
    rules: int
    is_good: bool
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class PodPlan:
    """The policies of one pod."""

    policy: ShownPolicy | None
    """The one that counts."""
    workload: str
    """By that policy."""
    refused: tuple[ShownPolicy, ...]
    """Those that would come first for the pod, but are not in force."""

    @property
    def counts(self) -> ShownWorkload | None:
        """What the status says of the pod's workload."""
        known = self.policy.workloads if self.policy else ()
        return next((each for each in known if each.workload == self.workload), None)


def shown(obj: Object) -> ShownPolicy:
    """Read a policy with its status."""
    policy, problem = None, ""
    try:
        policy = decoding.decode(obj)
    except ConfigError as error:
        problem = str(error)

    status, condition = objects.status(obj), objects.condition(obj, ACCEPTED) or {}
    return ShownPolicy(
        decoding.reference(obj),
        objects.namespace(obj),
        str(objects.spec(obj).get("mode") or Mode.SPREAD.value),
        policy is not None and condition.get("status", "True") == "True",
        str(condition.get("reason") or ""),
        str(condition.get("message") or problem),
        _number(status.get("workloadCount")),
        _number(status.get("replicas")),
        tuple(_workload(each) for each in _objects(status.get("workloads"))),
        policy,
        undecided(obj),
    )


def undecided(obj: Object) -> str:
    """Return what is wrong with the decision that a policy follows, "" for nothing."""
    return _failure(obj, DECIDED)


def message(obj: Object) -> str:
    """Return the message of a policy's first condition that does not hold, else of Accepted."""
    accepted = objects.condition(obj, ACCEPTED) or {}
    return failure(obj) or str(accepted.get("message") or "")


def failure(obj: Object) -> str:
    """Return the message of a policy's first condition that does not hold; "" if all do."""
    types = (ACCEPTED, CLUSTERS_FOUND, DECIDED, CLUSTERS_READY, PUBLISHED)
    return next(filter(None, (_failure(obj, type_) for type_ in types)), "")


def _failure(obj: Object, type_: str) -> str:
    condition = objects.condition(obj, type_) or {}
    return str(condition.get("message") or "") if condition.get("status") == "False" else ""


def shown_override(obj: Object) -> ShownOverride:
    """Read an override policy with its conditions; the first that is False counts."""
    state, message = "", ""
    for type_ in (conditions.ACCEPTED, conditions.APPLICABLE):
        condition = objects.condition(obj, type_) or {}
        if condition.get("status") == "False" and not message:
            state = str(condition.get("reason") or type_)
            message = str(condition.get("message") or "")

    return ShownOverride(
        override_policy.name_of(objects.key(obj)),
        len(_objects(objects.spec(obj).get("rules"))),
        not state,
        state or "In force",
        message,
    )


def of_pod(policies: Iterable[Object], pod: Object) -> PodPlan | None:
    """Return the policies of a pod; None if there are none for it."""
    found = {policy: each for each in map(shown, policies) if (policy := each.policy)}
    winner = PolicyIndex(p for p, each in found.items() if each.is_accepted).of(pod)
    refused = []
    for policy, each in found.items():
        if not each.is_accepted and PolicyIndex([policy]).of(pod) is not None:
            first = PolicyIndex([policy] if winner is None else [winner, policy]).of(pod)
            refused += [each] if first is policy else []

    if winner is None:
        return PodPlan(None, "", tuple(refused)) if refused else None

    return PodPlan(found[winner], workload_of(pod, winner.group_by), tuple(refused))


def summary(workload: ShownWorkload) -> str:
    """Return a workload's clusters in one line: `berlin 4 planned, 3 running, 1 waiting; ...`."""
    parts = [_cluster(each) for each in workload.clusters[:_MOST_CLUSTERS]]
    if more := len(workload.clusters) - _MOST_CLUSTERS:
        parts += [f"{more} more clusters"] if more > 0 else []

    if workload.unplaced:
        parts.append(f"{workload.unplaced} unplaced, which the maximums leave over")

    return "; ".join(parts)


def _cluster(each: ShownCluster) -> str:
    plan = "" if each.planned is None else f"{each.planned} planned, "
    waiting = f", {each.waiting} waiting" if each.waiting else ""
    closed = f", no pod is moved there until {each.no_moves_until}" if each.no_moves_until else ""
    return f"{each.cluster} {plan}{each.running} running{waiting}{closed}"


def _workload(raw: Object) -> ShownWorkload:
    clusters = (
        ShownCluster(
            str(each.get("cluster") or ""),
            _number(each["planned"]) if "planned" in each else None,
            _number(each.get("running")),
            _number(each.get("waiting")),
            visible.line(str(each.get("noMovesUntil") or "")),
        )
        for each in _objects(raw.get("targets"))
    )
    return ShownWorkload(
        str(raw.get("workload") or ""),
        _number(raw.get("replicas")),
        _number(raw.get("unplaced")),
        tuple(clusters),
    )


def _objects(raw: Any) -> list[Object]:
    return [each for each in raw if isinstance(each, dict)] if isinstance(raw, list) else []


def _number(raw: Any) -> int:
    return raw if isinstance(raw, int) else 0
