"""Decides what a pod waits for that has no node yet, and what to do about it. No I/O.

What keeps it is asked in the order in which it would be met: gates, the agent, targets and their
connections, the answers of candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from vnode.api import keys, lease_holders, objects, saved_manifest
from vnode.api.objects import Object
from vnode.gangs import membership
from vnode.insight import advice, connection_cures, nearest, refusal_cures, unread_targets
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.verdicts import PodState, Verdict
from vnode.pods.source.candidates import CandidateState
from vnode.scheduling import diagnosis

_TO_DO: Final = ("set ", "give ", "remove ", "create ", "install ", "write ")
"""How what is wrong with a gang ends: by what to do."""
_LONG: Final = timedelta(minutes=1)
"""After which an agent should have said something of a pod."""
_UNDECIDED: Final = (CandidateState.WAITING, CandidateState.RESERVED)


def judge(facts: Facts) -> Verdict:
    """Return the state of a pod without a node: what it waits for, and why."""
    gates = [gate.get("name", "") for gate in objects.spec(facts.pod).get("schedulingGates") or ()]
    if gates:
        return Verdict(
            PodState.GATED,
            f"the pod waits until its scheduling gates are removed: {', '.join(gates)}",
            tuple(_gate_cure(gate, facts.pod) for gate in gates),
        )

    if not agent_is_alive(facts):
        return Verdict(PodState.NO_AGENT, "the agent of this cluster does not run", advice.AGENT)

    if facts.targets:
        return _among_targets(facts)

    if facts.unread:
        return unread_targets.pending(facts)

    namespace = objects.namespace(facts.pod)
    cure = f"vnode connect --source FILE --target FILE --namespace {namespace} makes one"
    text = "there is no Target or ClusterTarget for this namespace"
    return Verdict(PodState.NO_TARGET, text, (cure,))


def _among_targets(facts: Facts) -> Verdict:
    """Return what a pod waits for that there are targets for."""
    scheduled = objects.condition(facts.pod, "PodScheduled") or {}
    is_rejected, message = scheduled.get("status") == "False", str(scheduled.get("message", ""))
    is_known = is_rejected and any(target.is_connected for target in facts.targets)
    if not is_known and not any(target.is_ready for target in facts.targets):
        told = [(t, str(t.ready.get("message") or "not checked yet")) for t in facts.targets]
        first, *others = [f"target {t.name} is not ready: {why}" for t, why in told]
        cures = connection_cures.of_all((t.target, why) for t, why in told)
        return Verdict(PodState.UNREACHABLE, first, (*others, *cures))

    if text := _undecided(facts, is_given_up=is_rejected and "no answer" in message):
        return Verdict(PodState.WAITING, text)

    if not is_rejected and any(target.trouble for target in facts.targets):
        return _unschedulable(facts, message, {})

    if is_rejected:
        reasons = diagnosis.split(message, {t.name for t in facts.targets})
        if not reasons and membership.of(facts.pod) is not None:
            return _of_gang(message)  # no target was tried

        return _unschedulable(facts, message, reasons)

    if unseen := [target for target in facts.targets if target.error]:
        why = f"{unseen[0].name} was not to be asked from here: {unseen[0].error}"
        return Verdict(PodState.WAITING, f"the pod has no place yet; {why}")

    created = objects.created_at(facts.pod)
    is_long = created is not None and facts.now - created > _LONG
    cures = ("if it lasts: vnode doctor says what keeps the agent from it",) if is_long else ()
    return Verdict(PodState.WAITING, "the pod is in the queue of the agent", cures)


def _undecided(facts: Facts, *, is_given_up: bool) -> str:
    """Return what a pod waits for of which targets have a candidate; "" for nothing.

    `is_given_up`: those that have not answered count no more.
    """
    states = [(t.name, t.candidate) for t in facts.targets if not t.trouble]
    reserved = [name for name, state in states if state is CandidateState.RESERVED]
    if reserved and membership.of(facts.pod) is not None:
        return f"{', '.join(reserved)} has a place for the pod, which waits for others of its gang"

    waiting = [name for name, state in states if state in _UNDECIDED]
    if waiting and not is_given_up:
        return f"a candidate waits for the answer of {', '.join(waiting)}"

    making = [name for name, state in states if state is CandidateState.PREEMPTING]
    ends = "ends pods of lower priority to make room, and waits for that"
    return f"{', '.join(making)} {ends}" if making else ""


def _gate_cure(gate: str, pod: Object) -> str:
    where = f"-n {objects.namespace(pod)}"
    if keys.is_of_queue(gate):
        return (
            f"{gate}: Kueue removes it once the pod's queue has room: kubectl get workloads "
            f"{where}, and kubectl describe workload of the pod, say what it waits for"
        )

    if gate == keys.AWAITS_STATE:
        return f"{gate}: the agent removes it once the state of the pod that it replaces is saved"

    return f"{gate}: the controller that added the gate has to remove it"


def _of_gang(message: str) -> Verdict:
    """Return that a pod waits for others of its gang, or what is wrong with the gang."""
    text, _colon, cure = message.rpartition(": ")
    if text and cure.startswith(_TO_DO):
        return Verdict(PodState.UNSCHEDULABLE, text, (cure,))

    if not message.startswith("waiting for "):
        return Verdict(PodState.WAITING, message)

    cure = (
        "if it lasts: create the pods that are missing, or lower how many start together "
        f"(annotation {keys.GANG_MINIMUM}, or minMember of the PodGroup)"
    )
    return Verdict(PodState.WAITING, message, (cure,))


def _unschedulable(facts: Facts, message: str, told: Mapping[str, str]) -> Verdict:
    """Return the cause of the target that came nearest; `told` is what the message says of each."""
    said = {t.name: _said_by(t) for t in facts.targets}
    rejected = {name: diagnosis.tidy(text) for name, text in said.items() if text}
    ready = {target.name: target.is_connected for target in facts.targets}
    found = nearest.relevant({**told, **rejected} or {"": message}, ready)
    is_unknown = saved_manifest.UNKNOWN in message
    text = saved_manifest.UNKNOWN if is_unknown else nearest.headline(found)
    return Verdict(PodState.UNSCHEDULABLE, text, refusal_cures.unschedulable(found, facts))


def _said_by(target: TargetFacts) -> str:
    """Return what is known of a target now, whatever the pod's condition says; "" for nothing."""
    if objects.is_terminating(target.target):
        return connection_cures.DELETED

    return target.rejection or target.trouble


def agent_is_alive(facts: Facts) -> bool:
    """Tell whether the source's agent renews its Lease; True where that may not be read."""
    return facts.lease is None or bool(lease_holders.live_holder(facts.lease, facts.now))
