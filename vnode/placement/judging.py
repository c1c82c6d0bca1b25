"""Judges whether a placement policy can be in force: it is valid, and its clusters exist. Pure."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from vnode.api.clock import TICK
from vnode.api.errors import MESSAGE_LIMIT
from vnode.placement import decoding
from vnode.scheduling.placement.policy import Policy

ACCEPTED: Final = "Accepted"
INVALID: Final = "Invalid"
UNKNOWN_CLUSTER: Final = "UnknownCluster"
_NAMES_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """Whether a policy is in force; if not, the message says what to do."""

    policy: Policy | None
    reason: str = ACCEPTED
    message: str = "the policy is in force"


def in_time(policy: Policy, now: float) -> Policy:
    """Return the policy without the drains that have ended at that moment of the wall clock."""
    drains = tuple(d for d in policy.drains if d.until is None or d.until - now >= TICK)
    return policy if drains == policy.drains else dataclasses.replace(policy, drains=drains)


def missing_cluster(policy: Policy, known: frozenset[str]) -> str | None:
    """Return what is wrong if the policy names a cluster that does not exist, else None."""
    for field, name in decoding.named(policy):
        if name not in known:
            listed = ", ".join(sorted(known, key=lambda name: (len(name), name))[:_NAMES_SHOWN])
            return (
                f"{field}: there is no Target or ClusterTarget {name}: create it, or take it "
                f"out of the policy (there are: {listed or 'none'})"
            )[:MESSAGE_LIMIT]

    return None
