"""Finds out which policies have come to plan something else, where they ask for it (`reschedule`).

What was before the first look is no change: a new leader does not know the former plan. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from vnode.planning.cluster_decision import ClusterDecision
from vnode.planning.move_policy import RescheduleTrigger
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode
from vnode.planning.seats import Share


@dataclass(frozen=True, slots=True)
class _Seen:
    policy: Policy
    shares: Mapping[str, Share]
    """By node, without drains: these move pods by themselves."""
    source: Policy
    """The policy as it is in force."""


class PlanChanges:
    """Remembers what each policy that asks for it planned last."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] | None = None
        self._there: list[PlannedNode] = []  # for which `_seen` was worked out
        self._met: set[str] = set()  # the nodes that have been ready; one that is not yet is none

    def observe(
        self, policies: Mapping[str, Policy], nodes: Iterable[PlannedNode]
    ) -> Iterator[tuple[str, RescheduleTrigger | None]]:
        """Yield the key of each policy, with what has changed if its pods are to be moved.

        A node that changes has all policies looked at, each for some milliseconds. What was seen
        counts once all have been.
        """
        known = list(nodes)
        met = self._met & {node.name for node in known}
        met |= {node.name for node in known if node.takes_pods or self._seen is None}
        there = [node for node in known if node.name in met]
        before, same = self._seen, there == self._there
        names = {node.name for node in there}
        now = dict[str, _Seen]()
        for key, policy in policies.items():
            change, was = None, before.get(key) if before is not None else None
            if was is not None and same and was.source is policy:
                now[key] = was  # as nearly all are, whenever one policy changes
            elif before is None or _is_known(policy):
                seen = _Seen(replace(policy, drains=()), _shares(policy, there), policy)
                change = _change(was, seen, names) if before is not None else None
                now[key] = seen
            elif was is not None:
                now[key] = was  # while a decision cannot be read, what was known before counts

            yield key, change

        self._seen, self._there, self._met = now, there, met


def _is_known(policy: Policy) -> bool:
    return policy.decision is None or policy.decision.is_known


def _decided(policy: Policy) -> list[str]:
    return [] if policy.decision is None else [each.name for each in policy.decision.clusters]


def _as_written(policy: Policy) -> Policy:
    """Return the policy without what others decide."""
    decision = policy.decision
    return (
        policy
        if decision is None
        else replace(policy, decision=ClusterDecision(decision.reference))
    )


def _shares(policy: Policy, nodes: Iterable[PlannedNode]) -> Mapping[str, Share]:
    if not policy.reschedule:
        return {}

    return {share.node: share for share in replace(policy, drains=()).shares(nodes)}


def _change(before: _Seen | None, now: _Seen, names: Collection[str]) -> RescheduleTrigger | None:
    wanted = now.policy.reschedule
    if not wanted:
        return None

    if before is None or _as_written(before.policy) != _as_written(now.policy):
        return RescheduleTrigger.POLICY if RescheduleTrigger.POLICY in wanted else None

    joined = now.shares.keys() - before.shares.keys()
    if not _is_known(before.policy):
        return None  # it is read for the first time: nobody knows what it was before

    is_decided = before.shares != now.shares and _decided(before.policy) != _decided(now.policy)
    follows = now.policy.decision is not None and RescheduleTrigger.DECISION in wanted
    if follows and (is_decided or joined):
        return RescheduleTrigger.DECISION

    if joined and RescheduleTrigger.CLUSTERS in wanted:
        return RescheduleTrigger.CLUSTERS

    # A cluster that is gone has changed no labels, and its pods go with it.
    left = _in_order(share for node, share in before.shares.items() if node in names)
    changed = left != _in_order(s for node, s in now.shares.items() if node not in joined)
    changed &= not is_decided
    return RescheduleTrigger.LABELS if changed and RescheduleTrigger.LABELS in wanted else None


def _in_order(shares: Iterable[Share]) -> list[Share]:
    """Return shares with their tiers counted among these: a cluster that comes shifts others."""
    known = sorted(shares, key=lambda share: share.node)
    ranks = {tier: rank for rank, tier in enumerate(sorted({share.tier for share in known}))}
    return [replace(share, tier=ranks[share.tier]) for share in known]
