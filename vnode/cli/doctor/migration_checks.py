"""Checks what Admiralty has left in a source, and what waits because of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api import enumeration, objects, saved_manifest
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import Finding, Level

_NAMED = 3  # objects that a finding names


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield findings about a source; nothing where Admiralty has left nothing."""
    waiting = [pod for pod in facts.unplaced if is_held(pod)]
    if waiting:
        names = enumeration.some([f"pod/{objects.key(pod)}" for pod in waiting], _NAMED)
        text = f"{names}: the pod waits, since "
        text += "its own scheduling constraints are not known"
        cure = (
            "vnode migrate signs pods that Admiralty has admitted; delete others and create them "
            "again"
        )
        yield Finding(facts.name, "unsigned pods", Level.FAIL, text, cure)

    if facts.finalized:
        names = enumeration.some(facts.finalized, _NAMED)
        text = f"{names}: a finalizer of Admiralty's keeps it from being deleted"
        yield Finding(facts.name, "finalizers", Level.WARN, text, "vnode migrate")


def is_held(pod: objects.Object) -> bool:
    """Tell whether a pod's condition says that its constraints are not known."""
    condition = objects.condition(pod, "PodScheduled") or {}
    return saved_manifest.UNKNOWN in str(condition.get("message", ""))
