"""Placeholders are where they should be, whatever happens in whatever order."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from tests.unit.pods.placeholder_sources import (
    WEB,
    FoundNode,
    Keeping,
)
from tests.unit.pods.policies import Room, add_replicas, entry, spread
from vnode.api import placeholders
from vnode.planning.policy import Mode
from vnode.planning.seats import plan

pytestmark = pytest.mark.looptime


def violations(source, pods):
    """Yield what is wrong with the placeholders of a workload in which nothing is under way."""
    policy = source.policy.policy
    nodes = [FoundNode(target.node, {}) for target in source.targets]
    shares = {share.node: share for share in policy.shares(nodes)} if policy else {}
    planned = plan(len(pods), shares.values(), WEB).planned
    bound = Counter(source.node_of(pod) for pod in pods)
    displaced, left = Counter(), Counter()
    for pod in pods:
        own, waiting = shares.get(source.node_of(pod)), placeholders.of(source.pod(pod))
        displaced[source.node_of(pod)] += bool(waiting)
        left.update(waiting)
        for node in waiting:
            share = shares.get(node)
            if own is None or share is None or not policy.overflow.keep_unschedulable:
                yield f"{pod} has a placeholder that nobody wants"
            elif share.tier < own.tier and bound[node] >= planned.get(node, 0):
                yield f"{pod} has a placeholder on {node}, which is worse than {own.node}"
            elif share.tier == own.tier and bound[node] >= planned.get(node, 0):
                yield f"{pod} has a placeholder on {node}, which has its share"

    there = Counter(target.node for target in source.targets for _pod in source.kept_in(target))
    if there != left:
        yield f"pods have {left}, and targets {there}"

    for node, share in shares.items():
        most = share.maximum
        if left[node] and most is not None and bound[node] + left[node] > most:
            yield f"{node} has {bound[node]} pods and {left[node]} placeholders"

        if not bound[""] and displaced[node] > max(0, bound[node] - planned.get(node, 0)):
            yield f"{displaced[node]} pods of {node} have placeholders, {bound[node]} run there"


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_happens_placeholders_are_where_they_should_be(clock, seed):
    dice = random.Random(seed)
    targets = [Room(f"c{number}", clock, dice.randrange(5)) for number in range(1, 5)]

    def policy():
        entries = [
            entry(
                target.node,
                weight=dice.choice([None, 1, 3]) if (fills := dice.random() < 0.5) else 1,
                tier=0 if fills else dice.randrange(2),
                maximum=dice.choice([None, 4, 6]),
                minimum=dice.choice([0, 0, 2]),
            )
            for target in dice.sample(targets, 4)
        ]
        keeps = dice.random() < 0.8
        mode = dice.choice([Mode.FILL, Mode.SPREAD])
        entries.append(entry("another", weight=1))
        return spread(*entries, mode=mode, after=10, keep_unschedulable=keeps)

    source, pods, made = Keeping(clock, policy(), *targets), [], 0
    async with source.keeping(clock):
        for _step in range(12):
            match dice.randrange(6):
                case 0 | 1:
                    count = dice.randrange(1, 6)
                    pods += add_replicas(source, count, first=made)
                    made += count
                case 2 | 3 if pods:
                    for pod in dice.sample(pods, dice.randrange(1, len(pods) + 1) // 2):
                        pods.remove(pod)
                        source.remove(pod)
                case 4:
                    target = dice.choice(targets)
                    target.grow(target.places + dice.randrange(4))
                case _:
                    source.change_policy(policy())

            await asyncio.sleep(dice.choice([1, 15, 60]))

        await asyncio.sleep(200)
        assert not list(violations(source, pods))
