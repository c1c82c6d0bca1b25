"""Decides what a pod that is being deleted waits for, and what to do about it. No I/O.

A pod goes once its target says that the containers have ended. What keeps it is asked along the
way: the connection, refusals, the delegate, the target's agent, finalizers, the agent of this
cluster.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from vnode.api import durations, keys, objects
from vnode.api.objects import Object
from vnode.insight import (
    advice,
    connection_cures,
    pending_pods,
    refusal_cures,
    refusals,
    status_text,
)
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.verdicts import PodState, Verdict

_GRACE_SLACK: Final = timedelta(seconds=60)
"""Beyond its grace period a delegate should have ended."""
_FINALIZERS: Final = ("the controllers that added them have to remove them",)


def judge(facts: Facts) -> Verdict:
    """Return the state of a terminating pod: what it waits for, and why."""
    target = facts.chosen
    if target is not None and not target.is_connected:
        return _unreachable(facts, target)

    if target is not None and (refused := refusals.of_updates(facts, target)):
        cures = refusal_cures.refused(refused)
        return Verdict(PodState.STUCK_ENDING, f"the pod cannot end: {refused}", cures)

    if target is not None and target.error:
        return _unseen(facts, target)

    if target is not None and target.delegate is not None:
        return _of_delegate(facts, target, target.delegate)

    if target is not None and target.chaperon is not None:
        return Verdict(
            PodState.STUCK_ENDING,
            f"the chaperon in target {target.name} waits for that cluster's agent",
            advice.target_agent(target.name),
        )

    if foreign := _foreign(facts.pod):
        text = f"finalizers of other controllers keep the pod: {foreign}"
        return Verdict(PodState.STUCK_ENDING, text, _FINALIZERS)

    ended = "its containers have ended" if target else "its target is gone, or it had none"
    if not pending_pods.agent_is_alive(facts):
        return Verdict(
            PodState.STUCK_ENDING,
            f"{ended}, but no agent is running to remove its finalizer",
            advice.AGENT,
        )

    return Verdict(PodState.ENDING, f"{ended}; the agent removes the pod's finalizer")


def _unreachable(facts: Facts, target: TargetFacts) -> Verdict:
    why = str(target.connection.get("message") or target.error or "not checked yet")
    return Verdict(
        PodState.STUCK_ENDING,
        f"target {target.name} is not ready, and whether the containers have ended is unknown: "
        f"{why}",
        (
            *connection_cures.of(target.target, why),
            *advice.stuck(target.key, facts.pod),
        ),
    )


def _unseen(facts: Facts, target: TargetFacts) -> Verdict:
    """Return the state of a pod whose target the agent reaches, and we do not."""
    return Verdict(
        PodState.STUCK_ENDING,
        f"target {target.name} was not to be asked from here, so that whether the containers have "
        f"ended is unknown: {target.error}",
        (
            (
                f"see what ends there: in {target.name}, kubectl get pods -n "
                f"{objects.namespace(facts.pod)} -l {keys.PARENT_UID}={objects.uid(facts.pod)}"
            ),
        ),
    )


def _of_delegate(facts: Facts, target: TargetFacts, delegate: Object) -> Verdict:
    since, foreign = _since_deletion(delegate, facts), _foreign(delegate)
    grace = objects.metadata(delegate).get("deletionGracePeriodSeconds") or 0
    if since is None and not pending_pods.agent_is_alive(facts):
        return Verdict(
            PodState.STUCK_ENDING,
            f"the delegate in target {target.name} has not been deleted, as the agent of this "
            "cluster does not run",
            advice.AGENT,
        )

    if since is None and (why := _waiting(facts, target)):
        return Verdict(PodState.ENDING, f"the pod runs in target {target.name} meanwhile: {why}")

    if since is not None and not _is_late(since, delegate):
        return Verdict(
            PodState.ENDING,
            f"its containers in target {target.name} are ending, for "
            f"{status_text.duration(since)} of {grace}s",
        )

    if since is not None and foreign and (objects.is_finished(delegate) or not grace):
        text = f"finalizers of other controllers keep the delegate in {target.name}: {foreign}"
        return Verdict(PodState.STUCK_ENDING, text, _FINALIZERS)

    return Verdict(
        PodState.STUCK_ENDING,
        f"the delegate in target {target.name} has not ended",
        advice.delegate_lingers(target.name, delegate, asked=since is not None),
    )


def _waiting(facts: Facts, target: TargetFacts) -> str:
    """Return for what a pod that vnode moves runs on; "" if it does not, or should not any more."""
    waits = objects.condition(facts.pod, keys.AWAITS_REPLACEMENT) or {}
    if waits.get("status") != "True" or objects.is_terminating(target.chaperon or {}):
        return ""

    message = str(waits.get("message") or "")
    end = objects.parse_timestamp(message.rpartition(" until ")[2].partition(" ")[0])
    return "" if end is not None and facts.now - end > _GRACE_SLACK else message


def _foreign(pod: Object) -> str:
    """Return the finalizers of a pod that are not vnode's."""
    return ", ".join(name for name in objects.finalizers(pod) if keys.is_foreign(name))


def _is_late(since: timedelta | None, pod: Object) -> bool:
    """Tell whether a pod should have ended that has been terminating for that long."""
    grace = objects.metadata(pod).get("deletionGracePeriodSeconds") or 0
    return since is None or since > durations.span(grace) + _GRACE_SLACK


def _since_deletion(pod: Object, facts: Facts) -> timedelta | None:
    """Return for how long a pod has been terminating; None if it was not deleted."""
    metadata = objects.metadata(pod)
    deadline = objects.parse_timestamp(str(metadata.get("deletionTimestamp") or ""))
    if deadline is None:
        return None

    return facts.now - deadline + durations.span(metadata.get("deletionGracePeriodSeconds") or 0)
