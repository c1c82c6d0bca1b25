"""Finds what is wrong, for the top of the first page: targets, and pods that wait or fail. Pure.

Pods are told in the words of `vnode explain`, as far as this cluster knows: nobody is asked. Those
for which the same is true are one trouble, so that a deployment of a thousand is one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from vnode.api import lease_holders, objects
from vnode.api.objects import Object, Objects
from vnode.dashboard import fair_shares
from vnode.dashboard.stages import Stage, StagedPod
from vnode.insight import advice, connection_cures, failing, judging
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.verdicts import PodState
from vnode.scheduling import diagnosis
from vnode.targets import conditions, model

_MAX_JUDGED: Final = 200  # troubles of pods, before those with the same words are put together
_PATIENCE: Final = timedelta(seconds=30)  # for which a pod may wait for its turn, or an answer
_WATCHED: Final = (
    conditions.CREDENTIALS_LAST,
    conditions.CLUSTER_NAME_UNIQUE,
    conditions.CONTROL_PLANE_HEALTHY,
    conditions.SELF_TARGET_ALLOWED,
    conditions.NODE_POOLS_VALID,
    conditions.AGENT,
)
_NOT_WRONG: Final = frozenset({"NotVnode"})  # Admiralty may run in a target


@dataclass(frozen=True, slots=True)
class FoundTrouble:
    """Something that is wrong.

    It is about a Target, or about `count` pods of a namespace at a stage, of which `pod` is the
    first: what to do about those is on its page, for which the target is asked.
    """

    state: str
    text: str
    cures: tuple[str, ...] = ()
    is_bad: bool = True
    since: str = ""
    target: str = ""
    namespace: str = ""
    pod: str = ""
    stage: str = ""
    count: int = 0

    @property
    def place(self) -> str:
        """The namespace that it is about; "" for the agent, and for ClusterTargets."""
        return self.namespace or objects.key_namespace(self.target)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known beside a pod; `chaperons` are by the pod's UID and the virtual node."""

    targets: Objects
    nodes: Mapping[str, Object]
    chaperons: Mapping[str, Mapping[str, Object]]
    policies: Objects
    lease: Object | None
    now: datetime


def find(pods: Iterable[StagedPod], around: Surroundings) -> tuple[FoundTrouble, ...]:
    """Return what is wrong, and then what will be; the agent first, then ClusterTargets, then those
    of each namespace by turns: targets, then pods."""
    found = (
        *_of_agent(around),
        *(each for target in around.targets for each in _of_target(target)),
        *_of_pods(pods, around),
    )
    wrong, to_come = ([each for each in found if each.is_bad is bad] for bad in (True, False))
    return (*_in_turns(wrong), *_in_turns(to_come))


def _in_turns(found: Sequence[FoundTrouble]) -> Iterator[FoundTrouble]:
    yield from (each for each in found if not each.place)
    others = [each for each in found if each.place]
    yield from fair_shares.first(others, lambda each: each.place, len(others))


def _of_agent(around: Surroundings) -> Iterator[FoundTrouble]:
    if around.lease is not None and not lease_holders.live_holder(around.lease, around.now):
        yield FoundTrouble("NoAgent", "the agent of this cluster does not run", advice.AGENT)


def _of_target(target: Object) -> Iterator[FoundTrouble]:
    key, ready = model.key_of(target), objects.condition(target, conditions.READY) or {}
    if ready.get("status") != "True":
        text = str(ready.get("message") or "not checked yet")
        yield FoundTrouble(
            str(ready.get("reason") or "Unknown"),
            text,
            connection_cures.of_all([(target, text)]),
            since=str(ready.get("lastTransitionTime") or ""),
            target=str(key),
        )

    for type_ in _WATCHED:
        found = objects.condition(target, type_) or {}
        if found.get("status") == "False" and found.get("reason") not in _NOT_WRONG:
            yield FoundTrouble(
                str(found.get("reason") or type_),
                str(found.get("message") or ""),
                is_bad=False,
                since=str(found.get("lastTransitionTime") or ""),
                target=str(key),
            )


def _of_pods(pods: Iterable[StagedPod], around: Surroundings) -> list[FoundTrouble]:
    alike: dict[tuple[object, ...], list[StagedPod]] = {}
    for staged in pods:
        if _is_wrong(staged, around.now):
            alike.setdefault(_likeness(staged), []).append(staged)

    told: dict[FoundTrouble, FoundTrouble] = {}
    groups = fair_shares.first(
        alike.values(), lambda group: objects.namespace(group[0].pod), _MAX_JUDGED
    )
    for group in groups:
        found = _judge(group[0], around)
        plain = replace(found, pod="", since="")
        first = told.get(plain, found)
        told[plain] = replace(first, count=first.count + len(group))

    return sorted(told.values(), key=lambda each: -each.count)


def _is_wrong(staged: StagedPod, now: datetime) -> bool:
    match staged.stage:
        case Stage.FAILING:
            return staged.status != failing.UNREACHABLE  # its target is told already
        case Stage.PENDING | Stage.CANDIDATE:
            created = objects.created_at(staged.pod)
            return staged.is_refused or created is None or now - created > _PATIENCE
        case _:
            return False


def _likeness(staged: StagedPod) -> tuple[object, ...]:
    """Return what pods have in common of which one is judged for all."""
    gates = objects.spec(staged.pod).get("schedulingGates") or ()
    names = tuple(str(gate.get("name")) for gate in gates)
    why = staged.why if staged.is_refused else staged.status
    place = (objects.namespace(staged.pod), staged.stage, staged.node)
    return (*place, why, names, staged.asked)


def _judge(staged: StagedPod, around: Surroundings) -> FoundTrouble:
    pod, namespace = staged.pod, objects.namespace(staged.pod)
    chaperons = around.chaperons.get(objects.uid(pod), {})
    covering = {model.key_of(target): target for target in around.targets}
    covering = {k: target for k, target in covering.items() if k.namespace in ("", namespace)}
    labels = diagnosis.labels(covering)
    targets = tuple(
        TargetFacts(
            key,
            target,
            around.nodes.get(key.node_name),
            chaperon=chaperons.get(key.node_name),
            label=labels[key],
        )
        for key, target in covering.items()
    )
    node = around.nodes.get(staged.node)
    facts = Facts(pod, around.now, targets=targets, policies=around.policies, node=node)
    verdict = judging.judge(facts)
    return FoundTrouble(
        verdict.state.value,
        verdict.text,
        is_bad=not verdict.state.is_good and verdict.state is not PodState.GATED,
        since=objects.created(pod),
        namespace=namespace,
        pod=objects.key(pod),
        stage=staged.stage.value,
    )
