"""Decides the state of a pod whose target may not be read, by what the pod itself says. No I/O.

Who may look at the pods of a namespace need not be allowed to list ClusterTargets. That a Target is
not seen then does not say that it is gone, nor that there is none.
"""

from __future__ import annotations

import re

from vnode.api import enumeration, objects
from vnode.insight import failing, failure_cures, refusal_cures, verdicts
from vnode.insight.facts import Facts
from vnode.insight.verdicts import PodState, Verdict


def is_behind(facts: Facts) -> bool:
    """Tell whether the Target of a bound pod may be one of those that are not seen."""
    return bool(facts.node_name and facts.unread) and facts.chosen is None


def bound(facts: Facts) -> Verdict:
    """Return the state of a bound pod by its own status."""
    node, status = facts.node_name, objects.status(facts.pod)
    if objects.is_terminating(facts.pod):
        return Verdict(PodState.ENDING, f"the pod ends on node {node}", _how(facts))

    if failure := failing.find(facts.pod, facts.now):
        cures = failure_cures.of(failure, facts.pod, None)
        return Verdict(verdicts.state_of(failure.kind), failure.text, cures)

    if status.get("phase") == "Running":
        return Verdict(PodState.RUNNING, f"the pod runs on node {node}")

    return Verdict(PodState.STARTING, f"the containers start on node {node}", _how(facts))


def pending(facts: Facts) -> Verdict:
    """Return the state of a pod without a node by its own condition."""
    scheduled = objects.condition(facts.pod, "PodScheduled") or {}
    message = str(scheduled.get("message") or "")
    if scheduled.get("status") != "False" or not message:
        text = "the agent has not said yet why the pod has no node"
        return Verdict(PodState.WAITING, text, _how(facts))

    said = re.sub(r"^0/\d+ targets: ", "", message)
    *cures, again = refusal_cures.unschedulable({"": said})
    return Verdict(PodState.UNSCHEDULABLE, message, (*cures, *_how(facts), again))


def _how(facts: Facts) -> tuple[str, ...]:
    """Return how more is to be known."""
    names = enumeration.some(facts.unread, len(facts.unread))
    resource = facts.unread[0].lower()
    can_i = f"kubectl auth can-i list {resource}"
    return (f"for what targets say, use credentials that may list {names}: {can_i}",)
