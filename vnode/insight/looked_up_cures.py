"""Names cures that depend on what there is: in this cluster, in the target, in its Target. Pure.

Each takes the part of a reason that it is about, so that no general cure is added to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from vnode.api import keys, objects
from vnode.insight.facts import Facts, TargetFacts

_Cure = Callable[[re.Match[str], TargetFacts, Facts], str]


def find(reasons: Mapping[str, str], facts: Facts) -> tuple[dict[str, str], list[str]]:
    """Return what is left of the reasons of targets, by name, and cures for the rest."""
    targets, left, found = {t.name: t for t in facts.targets}, dict(reasons), []
    for pattern, cure in _CURES:
        for name, text in left.items():
            target, match = targets.get(name), re.search(pattern, text, re.IGNORECASE)
            if target is not None and match is not None:
                left[name] = re.sub(pattern, "", text, flags=re.IGNORECASE)
                found.append(cure(match, target, facts))

    return left, list(dict.fromkeys(found))


def _claim(match: re.Match[str], target: TargetFacts, facts: Facts) -> str:
    claim, namespace = match["claim"], objects.namespace(facts.pod)
    is_here = claim not in facts.lacking_claims
    if keys.STORAGE_CLASSES not in objects.annotations(target.target):
        neither = "" if is_here else ", which this cluster lacks as well, or correct the pod"
        return (
            f"create PersistentVolumeClaim {claim} in namespace {namespace} of {target.name}"
            f"{neither}"
        )

    if not is_here:
        return (
            f"create PersistentVolumeClaim {claim} in namespace {namespace} of this cluster, from "
            f"where it follows to {target.name}, or correct the pod"
        )

    return (
        f"PersistentVolumeClaim {claim} has not followed to {target.name}: kubectl describe pod "
        f"{objects.name(facts.pod)} -n {namespace} says why"
    )


def _taint(_match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    named = f" ({', '.join(target.taints)})" if target.taints else ""
    return f"give the pod a toleration for the taints of the nodes of {target.name}{named}"


def _maximum(match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    return (
        f"raise maxReplicas, {match['most']}, of {target.name} in {match['policy']}, give that "
        "policy another cluster, or have the workload run fewer pods"
    )


def _webhook(match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    return (
        f"see why webhook {match['webhook']} of {target.name} does not answer: there, kubectl get "
        "mutatingwebhookconfigurations,validatingwebhookconfigurations -o wide names its Service; "
        "with failurePolicy Ignore pods start without it"
    )


def _override(match: re.Match[str], _target: TargetFacts, facts: Facts) -> str:
    policy = f"{match['kind'].lower()}/{match['name']}"
    where = "" if policy.startswith("cluster") else f" -n {objects.namespace(facts.pod)}"
    return (
        f"correct that rule (kubectl edit {policy}{where}), or have the policy's selector leave "
        "the pod out"
    )


_CURES: Final[tuple[tuple[str, _Cure], ...]] = (
    (r'persistentvolumeclaim "(?P<claim>[^"]+)" (not found|is being deleted)', _claim),
    (r"node\(s\) had untolerated taint(\(s\))?( \{[^}]*\})?", _taint),
    (r"at its maximum of (?P<most>\d+) by (?P<policy>[^;\s]+)", _maximum),
    (r'failed calling webhook "(?P<webhook>[^"]+)".*', _webhook),
    (r"(?P<kind>(cluster)?overridepolicy)/([^\s,/]+/)?(?P<name>[^\s,/]+).*", _override),
)
