"""Names cures that depend on what there is: in this cluster, in the target, in its Target. Pure.

Each takes the part of a reason that it is about, so that no general cure is added to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from vnode.api import keys, objects
from vnode.insight import connection_cures
from vnode.insight.facts import Facts, TargetFacts

_Cure = Callable[[re.Match[str], TargetFacts, Facts], str]


def find(reasons: Mapping[str, str], facts: Facts) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return what is left of the reasons of targets, by name, and the others' targets and cures."""
    targets, left = {t.name: t for t in facts.targets}, dict(reasons)
    found: list[tuple[str, str]] = []
    for name, text in reasons.items():
        if name in targets and (cures := connection_cures.of(targets[name].target, text)):
            left[name] = ""
            found += [(name, cure) for cure in cures]

    for pattern, cure in _CURES:
        for name, text in left.items():
            target, match = targets.get(name), re.search(pattern, text, re.IGNORECASE)
            if target is not None and match is not None:
                left[name] = re.sub(pattern, "", text, flags=re.IGNORECASE)
                found.append((name, cure(match, target, facts)))

    return left, found


def _cordon(_match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    where = f" -n {target.key.namespace}" if target.key.namespace else ""
    return f"vnode uncordon {target.key.name}{where}"


def _claim(match: re.Match[str], target: TargetFacts, facts: Facts) -> str:
    claim, namespace = match["claim"], objects.namespace(facts.pod)
    if "deleted" in match[0]:
        return (
            f"PersistentVolumeClaim {claim} goes once no pod of namespace {namespace} of "
            f"{target.name} uses it (there, kubectl describe pvc {claim} -n {namespace} names "
            "them): then create it again"
        )

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
    cure = f"give the pod a toleration for the taints of the nodes of {target.name}"
    if target.taints:
        return f"{cure} ({', '.join(target.taints)})"

    return f"{cure}; there, kubectl describe nodes names them, and whether the nodes are ready"


def _unfit_nodes(match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    """Return the cure for taints that say that a node is not ready for pods, or about to go."""
    return (
        f"nodes of {target.name} have taint {match['taint']}, which says that something is wrong "
        "with them, or that they go: there, kubectl describe nodes says more; a toleration does "
        "not mend that"
    )


def _maximum(match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    return (
        f"raise maxReplicas, {match['most']}, of {target.name} in {match['policy']}, give that "
        "policy another cluster, or have the workload run fewer pods"
    )


def _override(match: re.Match[str], _target: TargetFacts, facts: Facts) -> str:
    policy = f"{match['kind'].lower()}/{match['name']}"
    where = _where(policy, facts)
    return (
        f"correct that rule (kubectl edit {policy}{where}), or have the policy's selector leave "
        "the pod out"
    )


def _quota(match: re.Match[str], target: TargetFacts, facts: Facts) -> str:
    quota, namespace = match["quota"], objects.namespace(facts.pod)
    return (
        f"raise ResourceQuota {quota} of namespace {namespace} in {target.name}, or free what is "
        f"used of it: there, kubectl edit resourcequota {quota} -n {namespace}"
    )


def _account(match: re.Match[str], target: TargetFacts, facts: Facts) -> str:
    account, namespace = match["account"], objects.namespace(facts.pod)
    return (
        f"create service account {account} in namespace {namespace} of {target.name} (there: "
        f"kubectl create serviceaccount {account} -n {namespace}), or have the Target make it, by "
        f"annotation {keys.CREATE_SERVICE_ACCOUNTS}"
    )


def _namespace(match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    return f"kubectl create namespace {match['namespace']} (in {target.name})"


def _class(match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    kind, name = match["kind"], match["name"]
    mapped = (
        f", or map it to one that is there, by annotation {keys.PRIORITY_CLASSES} of the Target"
        if kind == "PriorityClass"
        else ""
    )
    return f"create {kind} {name} in {target.name}, or have the pod name one that is there{mapped}"


def _volume(_match: re.Match[str], target: TargetFacts, facts: Facts) -> str:
    claims = " ".join(_claims(facts))
    return (
        f"the pod's volume is bound to other nodes of {target.name}, or to another zone, than the "
        f"pod may use: there, kubectl get pvc {claims} -n {objects.namespace(facts.pod)} and "
        "kubectl describe pv name them; change the pod's node selector or affinity, or have nodes "
        "where the volume is"
    )


def _resource_claim(match: re.Match[str], _target: TargetFacts, facts: Facts) -> str:
    kind = f"ResourceClaim{match['template'] or ''}"
    return (
        f"create {kind} {match['name']} in namespace {objects.namespace(facts.pod)} of this "
        "cluster, from where it follows, or correct the pod's resourceClaims"
    )


def _policy(match: re.Match[str], _target: TargetFacts, facts: Facts) -> str:
    where = _where(match["policy"], facts)
    return (
        f"have the targets of {match['policy']} include one of the pod's (kubectl describe "
        f"{match['policy']}{where} tells which clusters it finds), or have its selector leave the "
        "pod out"
    )


def _plan(match: re.Match[str], _target: TargetFacts, facts: Facts) -> str:
    where = _where(match["policy"], facts)
    return (
        f"{match['policy']} and the pod's own constraints want different targets: kubectl describe "
        f"{match['policy']}{where} shows the plan; change one of them"
    )


def _together(match: re.Match[str], _target: TargetFacts, facts: Facts) -> str:
    policy = match["policy"]
    return (
        f"{policy} keeps all pods of the workload in one cluster: have room for this one there, or "
        f"change the policy's mode (kubectl edit {policy}{_where(policy, facts)})"
    )


def _divided(match: re.Match[str], _target: TargetFacts, facts: Facts) -> str:
    policy = match["policy"]
    return (
        f"give {policy} mode Single or Any (kubectl edit {policy}{_where(policy, facts)}), or have "
        "its selector leave pods of gangs out"
    )


def _decision(match: re.Match[str], target: TargetFacts, _facts: Facts) -> str:
    return (
        f"have {match['decision']} select {target.name}, by the Placement that it is of, or have "
        f"the selector of {match['policy']} leave the pod out"
    )


def _unbound(_match: re.Match[str], target: TargetFacts, facts: Facts) -> str:
    namespace = objects.namespace(facts.pod)
    return (
        f"see why the claim is not bound, in {target.name}: there, kubectl describe pvc -n "
        f"{' '.join((namespace, *_claims(facts)))} tells, such as a StorageClass that is missing"
    )


def _claims(facts: Facts) -> list[str]:
    """Return the names of the PersistentVolumeClaims that the pod names."""
    volumes = objects.spec(facts.pod).get("volumes") or ()
    named = [(v.get("persistentVolumeClaim") or {}).get("claimName") for v in volumes]
    return [str(name) for name in named if name]


def _where(policy: str, facts: Facts) -> str:
    return "" if policy.startswith("cluster") else f" -n {objects.namespace(facts.pod)}"


_NO_ACCOUNT: Final = (
    r"(.*is forbidden: )?error looking up service account .*?serviceaccount "
    r'"(?P<account>[^"]+)" not found'
)
_NO_CLASS: Final = (
    r"(.*is forbidden: )?(pod rejected: )?(no )?(?P<kind>RuntimeClass|PriorityClass) (with name )?"
    r'"?(?P<name>[^"\s]+)"?( for pods (of "[^"]+"|without one))? (was found|not found)'
    r"(: create it in the target)?"
)
_UNFIT_NODE: Final = (
    r"node\(s\) had untolerated taint(\(s\))? \{(?P<taint>(node\.kubernetes\.io/"
    r"(not-ready|unreachable|memory-pressure|disk-pressure|pid-pressure|network-unavailable"
    r"|out-of-service)|node\.cloudprovider\.kubernetes\.io/[\w-]+|[\w.-]+/agent-not-ready"
    r"|(ToBeDeletedBy|DeletionCandidateOf)ClusterAutoscaler|karpenter\.sh/\w+"
    r"|node\.cluster\.x-k8s\.io/uninitialized))[^}]*\}"
)
_VOLUME: Final = (
    r"node\(s\) (had volume node affinity conflict|had no available volume zone"
    r"|didn't match PersistentVolume's node affinity)"
)
_CURES: Final[tuple[tuple[str, _Cure], ...]] = (
    (r"the virtual node was unschedulable.*", _cordon),
    (r'persistentvolumeclaim "(?P<claim>[^"]+)" (not found|is being deleted)', _claim),
    (_UNFIT_NODE, _unfit_nodes),
    (r"node\(s\) had untolerated taint(\(s\))?( \{[^}]*\})?", _taint),
    (r"at its maximum of (?P<most>\d+) by (?P<policy>[^;\s]+)", _maximum),
    (r"(?P<kind>(cluster)?overridepolicy)/([^\s,/]+/)?(?P<name>[^\s,/]+).*", _override),
    (r"(.*is forbidden: )?(exceeded quota:|no room in ResourceQuota) (?P<quota>[^\s,]+).*", _quota),
    (_NO_ACCOUNT, _account),
    (r'namespaces "(?P<namespace>[^"]+)" not found', _namespace),
    (_NO_CLASS, _class),
    (_VOLUME, _volume),
    (r'ResourceClaim(?P<template>Template)? "?(?P<name>[^"\s]+)"? not found.*', _resource_claim),
    (r"^didn't match (?P<policy>(cluster)?placementpolicy/\S+)$", _policy),
    (r"^planned elsewhere by (?P<policy>[^:\s]+).*", _plan),
    (r"(?P<policy>(cluster)?placementpolicy/\S+) keeps the pods of .*", _together),
    (r"(?P<policy>(cluster)?placementpolicy/\S+) divides pods among clusters.*", _divided),
    (r"^(?P<policy>\S+): (?P<decision>\S+) selects (other|no) clusters$", _decision),
    (r"pod has unbound immediate PersistentVolumeClaims", _unbound),
)
