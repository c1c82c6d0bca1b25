"""Decides the state of a pod that was sent, and of which nothing fails. No I/O."""

from __future__ import annotations

from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.insight import (
    advice,
    failure_cures,
    kubelet_words,
    pending_pods,
    progress,
    starting_cures,
    status_text,
)
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.verdicts import PodState, Verdict
from vnode.kube.events import WARNING

_BEFORE_CONTAINERS: Final = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
"""Reasons of Events that are past once a container has started."""


def running(facts: Facts, target: TargetFacts, shown: Object) -> Verdict:
    """Return the state of a pod that runs, which `shown` shows: itself or its delegate."""
    text = f"the pod runs in target {target.name}"
    cures: tuple[str, ...] = ()
    if name := progress.unstarted(shown):
        waits = f"container {name} has not passed its startupProbe yet"
        return Verdict(PodState.STARTING, f"{text}; {waits}{kubelet_words.unhealthy(facts)}")

    if not pending_pods.agent_is_alive(facts):
        text += "; no agent of this cluster runs, so that its status here stands still"
        return Verdict(PodState.RUNNING, text, advice.AGENT)

    if found := progress.restarted(shown, facts.now):
        cures = failure_cures.of(found, facts.pod, target, target.delegate)
        text += f"; {found.text}"

    return Verdict(PodState.RUNNING, text, cures)


def starting(facts: Facts, target: TargetFacts, shown: Object) -> Verdict:
    """Return the state of a pod whose containers have yet to start."""
    if (sidecar := progress.unstarted_sidecar(shown)) is not None:
        return _behind(sidecar, facts, target)

    node = objects.node_name(shown) if shown is target.delegate else ""
    passed = "FailedScheduling" if node else ""
    told = (event for event in facts.delegate_events if event.get("type") == WARNING)
    past = {passed, *starting_cures.ASIDE}
    past.update(_BEFORE_CONTAINERS if progress.is_under_way(shown) else ())
    warnings = [event for event in told if event.get("reason") not in past]
    if warnings:
        return Verdict(
            PodState.NOT_STARTING,
            f"target {target.name} says: {warnings[-1].get('message', '')}",
            starting_cures.of(warnings[-1], target, facts.pod),
        )

    if objects.annotations(target.chaperon or {}).get(keys.POD_MISSING_SINCE):
        text = f"the delegate pod in target {target.name} was deleted there"
        cure = "the agent deletes this pod, for its owner to replace it; see that it runs"
        return Verdict(PodState.NOT_STARTING, text, (cure,))

    if target.error == "" and target.chaperon is not None and target.delegate is None:
        return Verdict(
            PodState.NOT_STARTING,
            f"target {target.name} has created no delegate pod yet",
            advice.target_agent(target.name),
        )

    where = f" on node {node}" if node else ""
    text = f"the containers start in target {target.name}{where}"
    if (container := progress.initializing(shown)) is not None:
        name, (_state, detail) = container.get("name"), status_text.state(container)
        long = progress.lasting(detail.get("startedAt"), facts.now)
        text += f": init container {name} runs{long}"
        cure = f"kubectl logs {objects.name(facts.pod)} -n {objects.namespace(facts.pod)} -c {name}"
    else:
        long = progress.lasting(objects.status(shown).get("startTime"), facts.now)
        text += f"{long} by now" if long else ""
        cure = starting_cures.all_events(target, facts.pod)

    return Verdict(PodState.STARTING, text, (f"what it waits for: {cure}",) if long else ())


def _behind(sidecar: Object, facts: Facts, target: TargetFacts) -> Verdict:
    """Return the state of a pod whose containers wait for one of its sidecars."""
    name, restarts = str(sidecar.get("name")), int(sidecar.get("restartCount") or 0)
    often = f", {restarts} restarts" if restarts else " yet"
    text = (
        f"the containers in target {target.name} wait for {name}, which has not passed its "
        f"startupProbe{often}{kubelet_words.unhealthy(facts)}"
    )
    if not restarts:
        return Verdict(PodState.STARTING, text)

    logs = f"kubectl logs {objects.name(facts.pod)} -n {objects.namespace(facts.pod)} -c {name}"
    cure = f"see what it says, and compare that with its startupProbe: {logs}"
    return Verdict(PodState.NOT_STARTING, text, (cure,))
