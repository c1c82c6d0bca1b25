"""Pods for which others have to end: in which target, and never in two at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.policies import Planned, add_replicas, entry, spread
from tests.unit.pods.targets import Target, only, rejects, reserves
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied
from vnode.planning.policy import Mode
from vnode.pods import preemption
from vnode.pods.source.broken_budgets import OF_NAMESPACE

pytestmark = pytest.mark.looptime

HIGH = {"priorityClassName": "high", "priority": 1000}
GRACE = 5.0  # seconds until victims are gone


def ends(*priorities, proxies=(), grace=GRACE):
    """End such pods for a candidate that may preempt, and say so to one that asks."""
    victims = preemption.encode(preemption.victims(priorities, 0, proxies))

    def answer(target, candidate):
        mark = objects.annotations(candidate).get(keys.PREEMPTION)
        if mark == preemption.ASKS:
            target.annotate(candidate, **{keys.VICTIMS: victims})
            rejects(target, candidate)
        else:
            nominates(target, candidate)
            asyncio.get_running_loop().call_later(grace, reserves, target, candidate)

    return answer


def nominates(target, candidate):
    entry = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [{**entry, "message": "no room yet"}], "nominatedNodeName": "n1"}
    target.report(candidate, status)


def promises_and_breaks_its_word(target, candidate):
    if objects.annotations(candidate).get(keys.PREEMPTION) == preemption.ASKS:
        target.annotate(candidate, **{keys.VICTIMS: '{"pods":1,"highest":-5}'})

    rejects(target, candidate)


def marks(target):
    """List the preemption marks of all candidates that were created, in order."""
    made = target.server.received("create", kinds.POD_CHAPERONS)
    return [objects.annotations(each.body).get(keys.PREEMPTION) for each in made]


async def test_the_target_with_the_least_harm_preempts_and_no_other(clock):
    worse, best, equal = (
        Target("c1", clock, ends(10, 10)),
        Target("c2", clock, ends(10)),
        Target("c3", clock, rejects),
    )
    source = SourceCluster(clock, worse, best, equal)
    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        await source.server.until(lambda: preemption.ALLOWED in marks(best))
        await asyncio.sleep(GRACE / 2)
        assert objects.status(source.pod("p"))["nominatedNodeName"] == best.node
        await source.until_bound("p")

    assert source.node_of("p") == best.node
    assert marks(best) == [preemption.ASKS, preemption.ALLOWED]
    assert marks(worse) == marks(equal) == [preemption.ASKS]


async def test_a_target_that_connects_and_may_not_take_the_pod_has_nobody_wait(clock):
    """It is of another namespace, and a user may have it connect without an end."""
    target = Target("c1", clock, ends(10))
    other = Target("c9", clock, home="hostile")
    source = SourceCluster(clock, target, other)
    other.connect()
    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        began = clock.monotonic()
        await source.until_bound("p")
        assert clock.monotonic() - began < 2 * GRACE

    assert marks(target) == [preemption.ASKS, preemption.ALLOWED]


@pytest.mark.parametrize("unread", ["", "denied", "too large"])
async def test_budgets_of_the_source_weigh_more_than_priorities(clock, unread):
    def answer(target, candidate):
        is_web = objects.labels(candidate)[keys.PARENT_UID] == "web"
        (reserves if is_web else ends(1, proxies=["web"]))(target, candidate)

    protected = Target("c1", clock, answer)
    other = Target("c2", clock, ends(500))
    source = SourceCluster(clock, protected, other)
    budget = {"spec": {"selector": {"matchLabels": {"app": "web"}}}}
    status = {"disruptionsAllowed": 0}
    metadata = {"name": "web", "namespace": "default", "uid": "b"}
    source.server.add(
        kinds.POD_DISRUPTION_BUDGETS, {"metadata": metadata, **budget, "status": status}
    )
    if unread == "too large":
        text = {**metadata, "name": "x", "annotations": {"a": "x" * OF_NAMESPACE.size}}
        source.server.add(kinds.POD_DISRUPTION_BUDGETS, {"metadata": text, **budget})
    elif unread:  # roles of an older release: priorities alone count
        source.server.fail(
            Denied(403, "Forbidden", "no"), verb="list", kind=kinds.POD_DISRUPTION_BUDGETS
        )

    async with source.running():
        source.add("web", labels={"app": "web"}, spec=only(protected))
        await source.until_bound("web")
        source.add("p", cpu="1", spec=HIGH)
        await source.until_bound("p")

    assert source.node_of("p") == (protected if unread else other).node


async def test_an_offer_that_comes_later_is_taken_up_soon(clock):
    """Victims of others were ending when the target first looked."""
    target = Target("c1", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        await source.until_said("p", "no room here")
        await asyncio.sleep(10)
        target.answer = ends(10)
        target.answer(target, target.candidate("p"))
        await asyncio.sleep(10 + GRACE)
        assert source.bound

    assert marks(target) == [preemption.ASKS, preemption.ALLOWED]


async def test_a_candidate_whose_scheduler_has_lost_its_wake_up_is_made_anew(clock):
    """Victims that another pod has ended make no event for it (kubernetes/kubernetes#141694)."""

    def forgets(target, candidate):
        asks = objects.annotations(candidate).get(keys.PREEMPTION) == preemption.ASKS
        if asks or marks(target).count(preemption.ALLOWED) > 1:
            (ends(10) if asks else reserves)(target, candidate)
            return

        nominates(target, candidate)
        loop = asyncio.get_running_loop()
        loop.call_later(grace, lambda: target.set_room(cpu="1"))

    grace = 100.0
    target = Target("c1", clock, forgets)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        await asyncio.sleep(grace)
        assert marks(target) == [preemption.ASKS, preemption.ALLOWED]  # victims end slowly
        await source.until_bound("p")
        assert source.bound["p"] < grace + 60

    assert marks(target) == [preemption.ASKS, preemption.ALLOWED, preemption.ALLOWED]


async def test_a_permission_is_taken_back_before_another_one_is_given(clock):
    liar = Target("c1", clock, promises_and_breaks_its_word)
    other = Target("c2", clock, ends(100))
    source = SourceCluster(clock, liar, other)
    together = []

    def allowed(target):
        found = target.find("p")
        return found is not None and preemption.is_allowed(found)

    def watch(kind, _change):
        if kind is kinds.POD_CHAPERONS:
            together.append((allowed(liar), allowed(other)))

    for target in (liar, other):
        target.server.store.changed.add(watch)

    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        await source.until_bound("p")

    assert source.node_of("p") == other.node
    assert marks(liar)[:2] == [preemption.ASKS, preemption.ALLOWED]
    assert (True, True) not in together


@pytest.mark.no_cover
async def test_thousands_of_pods_that_come_too_late_move_few_candidates(clock):
    victims = {"left": 5}

    def answer(target, candidate):
        if objects.annotations(candidate).get(keys.PREEMPTION) == preemption.ASKS:
            target.annotate(candidate, **{keys.VICTIMS: '{"pods":1,"highest":1}'})
            rejects(target, candidate)
        elif victims["left"]:
            victims["left"] -= 1
            reserves(target, candidate)
        else:
            rejects(target, candidate)

    targets = [Target(f"c{number}", clock, answer) for number in range(2)]
    source = SourceCluster(clock, *targets)
    async with source.running():
        for number in range(200):
            source.add(f"p{number}", cpu="1", spec=HIGH)

        await asyncio.sleep(60)
        assert len(source.bound) == 5
        for target in targets:
            target.answer = rejects  # nobody is left to be preempted

        await asyncio.sleep(120)
        writes = sum(target.asked() for target in targets)
        await asyncio.sleep(180)
        assert sum(target.asked() for target in targets) - writes < 60


async def test_a_target_that_deletes_what_it_may_preempt_for_is_not_asked_in_a_loop(clock):
    def deletes(target, candidate):
        if objects.annotations(candidate).get(keys.PREEMPTION) == preemption.ASKS:
            target.annotate(candidate, **{keys.VICTIMS: '{"pods":1,"highest":1}'})
            rejects(target, candidate)
        else:
            asyncio.get_running_loop().call_later(0.1, target.remove, candidate)

    target = Target("c1", clock, deletes)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        await asyncio.sleep(300)

    assert target.asked("create") < 60


async def test_no_other_target_is_asked_while_one_makes_room(clock):
    def preempts_unasked(target, candidate):
        nominates(target, candidate)
        asyncio.get_running_loop().call_later(GRACE, reserves, target, candidate)

    older = [Target(f"c{number}", clock, preempts_unasked) for number in range(3)]
    source = SourceCluster(clock, *older)
    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        await source.until_bound("p")

    assert sum(target.asked("create") for target in older) == 1


@pytest.mark.parametrize("spec", [{}, {**HIGH, "preemptionPolicy": "Never"}])
async def test_pods_that_preempt_nobody_do_not_ask(clock, spec):
    target = Target("c1", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="1", spec=spec)
        await source.until_said("p", "no room here")
        await asyncio.sleep(60)

    assert set(marks(target)) == {None}


async def test_a_pod_that_finds_no_victims_waits_without_writes(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(3)]
    source = SourceCluster(clock, *targets)
    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        await asyncio.sleep(15)
        writes = [target.asked() for target in targets]
        await asyncio.sleep(600)
        assert [target.asked() for target in targets] == writes


def filling(clock, *targets, **overflow):
    """Have a policy that fills one target after the other."""
    entries = [entry(target.node) for target in targets]
    return Planned(clock, spread(*entries, mode=Mode.FILL, **overflow), *targets)


async def test_a_planned_pod_that_another_cluster_has_room_for_preempts_nobody(clock):
    planned, other = Target("c1", clock, ends(10)), Target("c2", clock, reserves)
    source = filling(clock, planned, other, after=20)
    async with source.running():
        (pod,) = add_replicas(source, 1, spec=HIGH)
        await source.until_bound(pod)

    assert source.node_of(pod) == other.node
    assert marks(planned) == [preemption.ASKS]


@pytest.mark.parametrize(("most", "asked"), [(1, ["c1"]), (2, ["c1", "c2"]), (3, ["c1", "c2"])])
async def test_a_planned_pod_preempts_once_all_clusters_that_overflow_allows_were_asked(
    clock, most, asked
):
    targets = [Target("c1", clock, ends(10)), Target("c2", clock, rejects)]
    source = filling(clock, *targets, after=20, max_candidates=most)
    async with source.running():
        began = clock.monotonic()
        (pod,) = add_replicas(source, 1, spec=HIGH)
        await source.until_bound(pod)
        took = clock.monotonic() - began

    assert source.node_of(pod) == targets[0].node
    assert [target.link.target.name for target in targets if marks(target)] == asked
    assert took > 20 * (len(asked) - 1)
    assert preemption.ALLOWED not in marks(targets[1])


async def test_nobody_is_preempted_while_a_target_is_being_connected(clock):
    full, other = Target("c1", clock, ends(10)), Target("c2", clock, reserves)
    source = SourceCluster(clock, full, other)
    async with source.running():
        other.connect()
        source.add("p", cpu="1", spec=HIGH)
        await asyncio.sleep(20)
        other.set_healthy(True)
        await source.until_bound("p")

    assert source.node_of("p") == other.node
    assert marks(full) == [preemption.ASKS]


@pytest.mark.parametrize("number", [1, 2])
async def test_targets_are_told_how_often_others_were_preempted_and_then_none_is_for_a_while(
    clock, number
):
    """The room that victims leave is taken each time, as by schedulers that heed no nomination."""
    preempted = []

    def loses(target, candidate):
        rounds = preemption.rounds(candidate)
        if objects.annotations(candidate).get(keys.PREEMPTION) == preemption.ASKS:
            target.annotate(candidate, **{keys.VICTIMS: '{"pods":1,"highest":1}'})
        elif rounds.may_go_on(clock.now()):
            preempted.append(clock.monotonic())
            target.annotate(candidate, **{keys.PREEMPTED: rounds.next("n1", clock.now()).encode()})

        rejects(target, candidate)

    targets = [Target(f"c{each}", clock, loses) for each in range(number)]
    source = SourceCluster(clock, *targets)
    pause = preemption.PAUSE.total_seconds()
    async with source.running():
        source.add("p", cpu="1", spec=HIGH)
        await asyncio.sleep(pause * 0.9)
        assert len(preempted) == number  # one round each, as no target is asked twice
        await asyncio.sleep(pause * 4)
        assert len(preempted) <= preemption.MOST_ROUNDS + 2


@pytest.mark.parametrize("is_first", [False, True])
async def test_a_target_that_counts_rounds_without_end_keeps_no_pod_from_preempting(
    clock, is_first
):
    """It writes that others were preempted for the pod again and again, also in times to come."""
    forever = preemption.Rounds(2**31 - 1, 2**40 - 1).encode()

    def lies(target, candidate):
        marks = {keys.PREEMPTED: forever}
        if is_first:  # as if it were the one that a former leader has chosen
            marks[keys.PREEMPTION] = preemption.ALLOWED

        target.annotate(candidate, **marks)
        rejects(target, candidate)

    honest = Target("c2", clock, ends(10))
    source = SourceCluster(clock, Target("c1", clock, lies), honest)
    async with source.running():
        await asyncio.sleep(1)  # no former leader has seen the pod
        source.add("p", cpu="1", spec=HIGH)
        await source.until_bound("p")  # within a minute

    assert source.node_of("p") == honest.node
