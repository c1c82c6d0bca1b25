"""Placeholders, from the binding of a pod that overflowed until nobody wants them any more."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from tests import background
from tests.apiserver import links
from tests.unit.pods.policies import Planned, Room, add_replicas, entry, places, spread
from tests.unit.pods.targets import is_silent
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.listeners import subscription_scope
from vnode.kube.informer import Informer
from vnode.pods.source import proxy_state
from vnode.pods.source.candidates import could_start
from vnode.pods.source.placeholders import Placeholders
from vnode.scheduling.placement.policy import Mode
from vnode.scheduling.placement.seats import plan

pytestmark = pytest.mark.looptime

WEB = "deployment/default/web"
SETTLED = 20.0
PATIENCE = 60.0


class FoundNode(NamedTuple):
    name: str
    labels: dict[str, str]


class Keeping(Planned):
    """A source whose placeholders are kept."""

    keeper: Placeholders

    @asynccontextmanager
    async def keeping(self, clock):
        client = self.server.client()
        proxies = Informer(client, kinds.PODS, trim=proxy_state.trim)
        nodes = Informer(client, kinds.NODES)
        with subscription_scope():
            async with self.running(), links.following(proxies, nodes):
                self.keeper = Placeholders(
                    client, proxies, nodes, self.links, self.cache, self.policy, clock
                )
                async with background.running(self.keeper.run()):
                    yield

    def waiting(self):
        """Count candidates of bound pods that are not on the pod's node, by target."""
        return {
            target.link.target.name: len(self.kept_in(target))
            for target in self.targets
            if self.kept_in(target)
        }

    def kept_in(self, target):
        """Names of the pods that have a placeholder there."""
        names = []
        for candidate in target.server.all(kinds.POD_CHAPERONS):
            pod = objects.annotations(candidate)[keys.PARENT_NAME]
            if self.node_of(pod) not in ("", target.node):
                names.append(pod)

        return sorted(names)

    def recorded(self, pods):
        """Count placeholders by the annotations of pods."""
        found = {}
        for pod in pods:
            for node in placeholders.of(self.pod(pod)):
                found[node] = found.get(node, 0) + 1

        names = {target.node: target.link.target.name for target in self.targets}
        return {names[node]: count for node, count in found.items()}


def fleet(clock, *rooms, kind=Keeping, server=None, each=None, **fields):
    targets = [Room(f"c{number}", clock, count) for number, count in enumerate(rooms, 1)]
    entries = (
        entry(t.node, weight=w, **(each or {"minimum": 2}))
        for t, w in zip(targets, (40, 40, 20), strict=True)
    )
    return kind(clock, spread(*entries, **fields), *targets)


def fill(clock, *rooms, after=60, **fields):
    targets = [Room(f"c{number}", clock, count) for number, count in enumerate(rooms, 1)]
    policy = spread(*(entry(t.node) for t in targets), mode=Mode.FILL, after=after, **fields)
    return Keeping(clock, policy, *targets)


async def overflowed(source):
    """Twenty pods of the example, four of which have overflowed."""
    pods = add_replicas(source, 20)
    await source.until_bound(*pods)
    await asyncio.sleep(SETTLED)
    assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 8}
    return pods


async def test_better_candidates_stay_and_worse_ones_go(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        assert source.waiting() == source.recorded(pods) == {"c1": 2, "c2": 2}
        for target in source.targets[:2]:
            for pod in source.kept_in(target):
                annotations = objects.annotations(target.candidate(pod))
                assert keys.PLACEHOLDER in annotations
                assert keys.IS_ALLOWED not in annotations


async def test_an_hour_of_steady_load_writes_nothing(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        await overflowed(source)
        patches = source.server.count("patch", kinds.PODS)
        written = sum(target.asked() for target in source.targets)
        await asyncio.sleep(3600)
        assert source.server.count("patch", kinds.PODS) == patches
        assert sum(target.asked() for target in source.targets) == written
        assert source.waiting() == {"c1": 2, "c2": 2}


async def test_a_policy_that_keeps_none_keeps_none(clock):
    source = fleet(clock, 6, 6, 14, keep_unschedulable=False)
    async with source.keeping(clock):
        pods = await overflowed(source)
        assert not source.waiting()
        assert not any(keys.PLACEHOLDERS in objects.annotations(source.pod(p)) for p in pods)


async def test_a_pod_that_finds_room_where_it_was_planned_leaves_none(clock):
    source = fill(clock, 0, 0)
    async with source.keeping(clock):
        pods = add_replicas(source, 1)
        await asyncio.sleep(90)
        assert all(target.find(pods[0]) for target in source.targets)
        source.targets[0].grow(1)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert places(source, pods) == {"c1": 1}
        assert not source.waiting()
        assert not source.recorded(pods)


async def test_a_candidate_that_was_never_answered_does_not_stay(clock):
    source = fill(clock, 0, 9, after=5)
    source.targets[0].answer = is_silent
    async with source.keeping(clock):
        pods = add_replicas(source, 1)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert places(source, pods) == {"c2": 1}
        assert not source.waiting()


@pytest.mark.parametrize(
    ("fields", "without_vnode", "leaves"),
    [
        ({"spec": {"priority": 100}}, False, True),
        ({"spec": {"priority": 100}}, True, False),
        ({"spec": {"priority": 100, "preemptionPolicy": "Never"}}, True, True),
        ({"spec": {"priority": 0}}, True, True),
        ({"annotations": {keys.FORWARD: ""}}, False, False),
    ],
)
async def test_pods_that_would_preempt_or_be_sent_on_leave_none(
    clock, fields, without_vnode, leaves
):
    source = fill(clock, 0, 9, after=10)
    source.targets[0].link.set_agent_silent(without_vnode)
    async with source.keeping(clock):
        pods = add_replicas(source, 1, **fields)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert source.waiting() == ({"c1": 1} if leaves else {})


async def test_in_fill_a_pod_waits_in_each_cluster_that_it_passed(clock):
    source = fill(clock, 1, 1, 9)
    async with source.keeping(clock):
        pods = add_replicas(source, 3)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert places(source, pods) == {"c1": 1, "c2": 1, "c3": 1}
        assert source.waiting() == {"c1": 2, "c2": 1}


async def test_the_end_of_a_pod_is_that_of_its_placeholder(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        await overflowed(source)
        (pod, *_) = source.kept_in(source.targets[0])
        finalizers = {"finalizers": ["example.com/hold"]}
        source.change(pod, metadata=finalizers)
        await source.server.client().delete(kinds.PODS, pod, "default")
        await asyncio.sleep(SETTLED)
        assert objects.is_terminating(source.pod(pod))
        assert source.waiting() == {"c1": 1, "c2": 2}
        (other, *_) = source.kept_in(source.targets[1])
        source.change(other, status={"phase": "Succeeded"})
        await asyncio.sleep(SETTLED)
        assert source.waiting() == {"c1": 1, "c2": 1}


@pytest.mark.parametrize("keeps", [None, False])
async def test_a_policy_that_changes_or_ends_takes_them_along(clock, keeps):
    source = fleet(clock, 6, 6, 14)
    other = None if keeps is None else fleet(clock, 6, 6, 14, keep_unschedulable=False)
    async with source.keeping(clock):
        pods = await overflowed(source)
        source.change_policy(other and other.policy.policy)
        await asyncio.sleep(SETTLED)
        assert not source.waiting()
        assert not source.recorded(pods)
        assert places(source, pods) == {"c1": 6, "c2": 6, "c3": 8}


async def test_a_plan_that_has_no_gap_any_more_takes_them_along(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        weights = zip(source.targets, (30, 40, 40), strict=True)
        source.change_policy(spread(*(entry(t.node, weight=w) for t, w in weights)))
        await asyncio.sleep(PATIENCE + SETTLED)  # planned 6/7/7, or 5/8/7
        assert source.waiting().get("c1", 0) == 0
        assert sum(source.waiting().values()) == 1
        for pod in [pod for pod in pods if source.node_of(pod) == source.targets[2].node][:2]:
            source.remove(pod)

        await asyncio.sleep(PATIENCE + SETTLED)
        assert not source.waiting()


async def test_a_gap_that_a_waiting_pod_is_planned_for_takes_them_along(clock):
    source = fleet(clock, 6, 6, 8)
    async with source.keeping(clock):
        await overflowed(source)
        (waits,) = add_replicas(source, 1, first=20)
        await asyncio.sleep(10 * PATIENCE)
        assert source.waiting() == {"c1": 2, "c2": 2}
        workload = source.cache.workloads.of(source.pod(waits), "")
        member = workload.members[objects.uid(source.pod(waits))]
        c1, c2, _ = (target.node for target in source.targets)
        assert member.aim == c2
        workload.plan(member, c1, ())
        await asyncio.sleep(2 * PATIENCE + SETTLED)
        assert (member.aim, source.waiting()) == (c1, {"c1": 1, "c2": 2})


async def test_pods_that_are_missing_for_a_moment_leave_the_placeholders_of_others(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        kept = source.waiting()
        for gone in [pod for pod in pods if not placeholders.of(source.pod(pod))][:8]:
            source.remove(gone)

        await asyncio.sleep(PATIENCE - SETTLED)
        add_replicas(source, 8, first=20)
        await asyncio.sleep(10 * PATIENCE)
        assert source.waiting() == kept


async def test_placeholders_count_towards_the_maximum_of_their_cluster(clock):
    source = fill(clock, 2, 99, after=30)
    first, second = (target.node for target in source.targets)
    source.policy.policy = spread(entry(first, maximum=4), entry(second), mode=Mode.FILL, after=30)
    async with source.keeping(clock):
        pods = add_replicas(source, 4)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert source.waiting() == {"c1": 2}
        more = add_replicas(source, 2, first=4)
        await asyncio.sleep(5)
        assert places(source, more) == {"c2": 2}
        assert len(source.targets[0].server.all(kinds.POD_CHAPERONS)) == 4


async def test_a_pod_that_waits_for_the_maximum_goes_when_a_placeholder_does(clock):
    source = fill(clock, 1, 1, after=20)
    nodes = [target.node for target in source.targets]
    source.policy.policy = spread(
        *(entry(node, maximum=2) for node in nodes), mode=Mode.FILL, after=20
    )
    async with source.keeping(clock):
        pods = add_replicas(source, 2)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert source.waiting() == {"c1": 1}
        (behind,) = source.kept_in(source.targets[0])
        source.remove(behind)
        await asyncio.sleep(SETTLED)
        assert not source.waiting()
        more = add_replicas(source, 1, first=2)
        await asyncio.sleep(5)
        assert source.targets[0].find(more[0])


async def test_one_that_is_deleted_in_its_target_is_struck_off(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        (pod, *_) = source.kept_in(source.targets[0])
        source.targets[0].remove(source.targets[0].candidate(pod))
        await asyncio.sleep(SETTLED)
        assert source.waiting() == source.recorded(pods) == {"c1": 1, "c2": 2}


async def test_one_that_somebody_allowed_there_is_deleted(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        (pod, *_) = source.kept_in(source.targets[0])
        target = source.targets[0]
        target.annotate(target.candidate(pod), **{keys.IS_ALLOWED: "true"})
        await asyncio.sleep(SETTLED)
        assert target.find(pod) is None
        assert source.recorded(pods) == {"c1": 1, "c2": 2}


async def test_a_cordoned_cluster_keeps_none_and_one_that_is_lost_keeps_them(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        source.targets[0].set_healthy(False)
        await asyncio.sleep(600)
        assert source.waiting() == {"c1": 2, "c2": 2}
        source.targets[0].set_healthy(True)
        source.cordon(source.targets[1])
        await asyncio.sleep(SETTLED)
        assert source.waiting() == source.recorded(pods) == {"c1": 2}
        source.cordon(source.targets[2])
        await asyncio.sleep(SETTLED)
        assert source.waiting() == {"c1": 2}


async def test_a_target_that_is_deleted_has_none(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        source.links.remove(source.targets[0].link)
        source.server.remove(kinds.NODES, source.targets[0].node)
        await asyncio.sleep(SETTLED)
        assert source.recorded(pods) == {"c2": 2}


async def test_after_a_restart_they_are_known_and_marked(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.running():  # its agent dies before it has marked one
        pods = add_replicas(source, 20)
        await source.until_bound(*pods)

    for target in source.targets:
        target.reconnect()

    assert not any(
        keys.PLACEHOLDER in objects.annotations(candidate)
        for target in source.targets
        for candidate in target.server.all(kinds.POD_CHAPERONS)
    )
    source = Keeping(clock, source.policy.policy, *source.targets, server=source.server)
    async with source.keeping(clock):
        await asyncio.sleep(SETTLED)
        assert source.waiting() == source.recorded(pods) == {"c1": 2, "c2": 2}
        target = source.targets[0]
        marked = [objects.annotations(target.candidate(p)) for p in source.kept_in(target)]
        assert all(keys.PLACEHOLDER in annotations for annotations in marked)


async def test_a_placeholder_that_could_start_tells_since_when(clock):
    source = fleet(clock, 6, 6, 14)
    first = source.targets[0]
    async with source.keeping(clock):
        await overflowed(source)
        openings, heard = source.keeper.openings, []
        openings.subscribe(heard.append)
        assert openings.since(WEB, first.node) is None
        began = clock.monotonic()
        first.grow(7)
        await asyncio.sleep(100)
        since = openings.since(WEB, first.node)
        assert since is not None
        assert began <= since < began + 1
        assert openings.since("deployment/default/db", first.node) is None
        assert openings.since(WEB, source.targets[1].node) is None
        first.grow(6)
        await asyncio.sleep(1)
        assert openings.since(WEB, first.node) is None
        first.grow(7)
        await asyncio.sleep(1)
        assert (openings.since(WEB, first.node) or 0) >= began + 100
        assert heard == [WEB] * 6
        for pod in source.kept_in(first):
            source.remove(pod)

        await asyncio.sleep(SETTLED)
        assert openings.since(WEB, first.node) is None


async def test_a_target_that_does_not_answer_tells_nothing(clock):
    source = fleet(clock, 6, 6, 14)
    first = source.targets[0]
    async with source.keeping(clock):
        await overflowed(source)
        first.grow(7)
        await asyncio.sleep(1)
        assert source.keeper.openings.since(WEB, first.node) is not None
        first.set_healthy(False)
        await asyncio.sleep(1)
        assert source.keeper.openings.since(WEB, first.node) is None
        healed = clock.monotonic()
        first.set_healthy(True)
        await asyncio.sleep(1)
        assert (source.keeper.openings.since(WEB, first.node) or 0) >= healed


async def test_the_place_of_a_placeholder_goes_to_the_replacement(clock):
    source = fleet(clock, 6, 6, 14)
    first = source.targets[0]
    async with source.keeping(clock):
        pods = await overflowed(source)
        (evicted, *_) = source.kept_in(first)
        source.remove(evicted)
        pods = [*(set(pods) - {evicted}), *add_replicas(source, 1, first=20)]
        await asyncio.sleep(1)
        first.grow(7)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert places(source, pods) == {"c1": 7, "c2": 6, "c3": 7}
        assert source.waiting() == {"c1": 1, "c2": 2}


async def test_what_users_write_as_placeholders_counts_for_nothing(clock):
    source = fill(clock, 9, 9)
    async with source.keeping(clock):
        mine = {keys.PLACEHOLDERS: source.targets[1].node}
        pods = add_replicas(source, 1, annotations=mine)
        await source.until_bound(*pods)
        assert source.recorded(pods) == {}
        source.change(pods[0], metadata={"annotations": mine})
        await asyncio.sleep(SETTLED)
        assert source.recorded(pods) == {}


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


def chaperon(*, annotations=None, reason=None, message=""):
    """A placeholder, as its target reports it."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    status = {"conditions": [condition]} if reason else {}
    return {"metadata": {"annotations": annotations or {}}, "status": status}


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (chaperon(), None),
        (chaperon(reason="Unschedulable", message="no room"), False),
        (chaperon(reason="SchedulerError", message=f"bind: ns/p {keys.COULD_START}"), True),
        (chaperon(reason="SchedulerError", message="etcd is slow"), None),
        (chaperon(reason="Unschedulable", annotations={keys.IS_RESERVED: "true"}), True),
        (chaperon(annotations={keys.POD_MISSING_SINCE: "now", keys.IS_RESERVED: "true"}), False),
        ({"metadata": {"deletionTimestamp": "now"}}, False),
    ],
)
async def test_what_a_target_says_of_a_placeholder(found, says):
    assert could_start(found) is says
