"""Checks what pods of a source wait for, where that is nothing that they say themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.api import enumeration, keys, objects
from vnode.api.target_key import TargetKey
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import Finding, Level
from vnode.insight import nearest
from vnode.insight.nearest import Nearness
from vnode.scheduling import diagnosis
from vnode.targets import model

_NAMED: Final = 3  # pods in a text


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Find pods that ask to be sent and are not, as their namespaces do not take part."""
    if not facts.outside:
        return

    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    spaces = sorted({objects.split_key(key)[0] for key in facts.outside})
    text = (
        f"{len(facts.outside)} pods ask for targets in namespaces without the label "
        f"{label}={value}, so that they run here: {enumeration.some(facts.outside, _NAMED)}"
    )
    cure = f"kubectl label namespace {' '.join(spaces)} {label}={value}, and create them again"
    yield Finding(facts.name, "elected pods", Level.WARN, text, cure)


def unanswered(facts: ClusterFacts) -> dict[TargetKey, list[str]]:
    """Return the pods of which a target has not said whether it has a place for them, by target."""
    found: dict[TargetKey, list[str]] = {}
    keys_ = [model.key_of(target) for target in facts.targets]
    for pod in facts.unplaced:
        namespace = objects.namespace(pod)
        labels = diagnosis.labels(key for key in keys_ if key.namespace in ("", namespace))
        condition = objects.condition(pod, "PodScheduled") or {}
        reasons = diagnosis.split(str(condition.get("message") or ""), set(labels.values()))
        for key, label in labels.items():
            if nearest.of(reasons.get(label, "")) is Nearness.SILENT:
                found.setdefault(key, []).append(objects.key(pod))

    return found


def silence(key: TargetKey, pods: list[str]) -> Iterator[Finding]:
    """Find that a target has not answered about pods, if there are any."""
    if pods:
        text = f"it has not answered about {len(pods)} pods: {enumeration.some(pods, _NAMED)}"
        cure = (
            f"see that the agent and the candidate scheduler of {key.name} run: vnode doctor "
            "--target FILE tells which does not"
        )
        yield Finding(f"target {key}", "candidates", Level.FAIL, text, cure)
