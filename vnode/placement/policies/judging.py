"""Judges whether a placement policy can be in force: it is valid, and its clusters exist. Pure.

A cluster has to exist when a policy is written that names it. Later it may go: then what is said of
it is about nothing, and the rest of the policy stays in force. Which clusters were there when it
was accepted, its condition Accepted remembers for the next agent.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vnode.api import enumeration, objects
from vnode.api.durations import TICK
from vnode.api.errors import MESSAGE_LIMIT, ConfigError
from vnode.api.objects import Object
from vnode.placement.policies import decoding
from vnode.planning.policy import Policy

ACCEPTED: Final = "Accepted"
INVALID: Final = "Invalid"
UNKNOWN_CLUSTER: Final = "UnknownCluster"
_NAMES_SHOWN: Final = 10
NONE: Final = frozenset[str]()


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """Whether a policy is in force; if not, the message says what to do."""

    policy: Policy | None
    reason: str = ACCEPTED
    message: str = "the policy is in force"
    gone: str = ""
    """Which clusters of a policy in force do not exist any more, and what to do; "": none."""
    is_final: bool = True
    """It is known which clusters exist."""


def in_time(policy: Policy, now: float) -> Policy:
    """Return the policy without the drains that have ended at that moment of the wall clock."""
    drains = tuple(d for d in policy.drains if d.until is None or d.until - now >= TICK)
    return policy if drains == policy.drains else dataclasses.replace(policy, drains=drains)


def names_of(policy: Policy | None) -> frozenset[str]:
    """Return the names of clusters that a policy needs."""
    return frozenset(name for _, name in decoding.named(policy)) if policy is not None else NONE


def asks_for_clusters(policy: Policy) -> bool:
    """Tell whether it matters to a policy which clusters there are."""
    by_name = policy.clusters.names or policy.drains
    named = by_name or any(target.clusters.names for target in policy.targets)
    return bool(named or policy.decision)


def was_accepted(obj: Object) -> bool:
    """Tell whether a policy was accepted as it is now: the clusters that it names did exist."""
    condition = objects.condition(obj, ACCEPTED) or {}
    generation = objects.metadata(obj).get("generation")
    return condition.get("status") == "True" and condition.get("observedGeneration") == generation


def accepted_names(obj: Object) -> frozenset[str]:
    """Return the names of clusters in a policy that was accepted as it is now."""
    try:
        return names_of(decoding.decode(obj)) if was_accepted(obj) else NONE
    except ConfigError:
        return NONE


def judge(policy: Policy, known: frozenset[str], existed: frozenset[str] = NONE) -> PolicyVerdict:
    """Judge a valid policy; `known` clusters exist, and the `existed` ones did."""
    missing = [(field, name) for field, name in decoding.named(policy) if name not in known]
    new = [(field, name) for field, name in missing if name not in existed]
    if new:
        return PolicyVerdict(None, UNKNOWN_CLUSTER, _missing(new[:1], known))

    if not missing:
        return PolicyVerdict(policy)

    return PolicyVerdict(policy, gone=f"the rest of the policy is in force; {_gone(missing)}")


def _missing(missing: Sequence[tuple[str, str]], known: frozenset[str]) -> str:
    return (
        f"{missing[0][0]}: there is no Target or ClusterTarget {missing[0][1]}: create it, or take "
        f"it out of the policy (there are: {_listed(known) or 'none'})"
    )[:MESSAGE_LIMIT]


@functools.lru_cache(maxsize=16)
def _listed(known: frozenset[str]) -> str:
    """List the shortest names: these may be thousands, and many policies name one that is none."""
    return ", ".join(sorted(known, key=lambda name: (len(name), name))[:_NAMES_SHOWN])


def _gone(missing: Sequence[tuple[str, str]]) -> str:
    names = enumeration.some([f"{name} ({field})" for field, name in missing], _NAMES_SHOWN)
    return (
        f"there is no Target or ClusterTarget any more: {names}: create it, or take it out "
        "of the policy"
    )[:MESSAGE_LIMIT]
