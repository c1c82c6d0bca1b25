"""What it would cost to preempt in a target: told in few words, compared as by kube-scheduler."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
from vnode.pods import preemption
from vnode.pods.preemption import Victims

PRIORITIES = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=50)


def chaperon(text):
    return {"metadata": {"annotations": {keys.VICTIMS: text}}}


@given(PRIORITIES, st.integers(0, 50), st.lists(st.text("ab/", max_size=5), max_size=99))
def test_what_a_target_says_is_read(priorities, violations, proxies):
    victims = preemption.victims(priorities, violations, proxies)
    assert preemption.read(chaperon(preemption.encode(victims))) == victims
    assert len(victims.proxies) <= preemption.MOST_PROXIES


@given(PRIORITIES, PRIORITIES, st.integers(0, 2), st.integers(0, 2))
def test_harm_is_compared_as_kube_scheduler_compares_it(first, second, broken, also_broken):
    def slow(priorities, violations):
        total = sum(p + 2**31 for p in priorities)
        return [violations, max(priorities), total, len(priorities)]

    harms = [preemption.victims(p, v, ()).harm() for p, v in ((first, broken), (second, 0))]
    assert (harms[0] < harms[1]) == (slow(first, broken) < slow(second, 0))
    one = preemption.victims(first, broken, ())
    assert one.harm(also_broken) == preemption.victims(first, broken + also_broken, ()).harm()


@pytest.mark.parametrize(
    "text",
    [
        *(None, 3, "", "{", "[]", "{}", '{"pods":0,"highest":1}', '{"pods":1,"highest":"a"}'),
        '{"pods":1,"highest":99999999999}',
        '{"pods":1,"highest":1,"proxies":["' + "a" * 40_000 + '"]}',
    ],
)
def test_what_a_target_says_without_sense_is_no_offer(text):
    assert preemption.read(chaperon(text)) is None


@pytest.mark.parametrize(
    ("spec", "mark"),
    [
        ({}, ""),
        ({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}, ""),
        ({"priorityClassName": "high"}, preemption.ASKS),
        ({"priorityClassName": "high", "preemptionPolicy": "Never"}, ""),
    ],
)
def test_pods_with_a_class_that_preempts_ask(spec, mark):
    assert preemption.mark({"spec": spec}, allowed=False) == mark
    assert bool(preemption.mark({"spec": spec}, allowed=True)) == bool(mark)


def test_a_candidate_with_a_node_to_come_is_preempting():
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [waits], "nominatedNodeName": "n1"}
    assert preemption.is_preempting({"status": status})
    assert not preemption.is_preempting({"status": {"conditions": [waits]}})
    placed = {"conditions": [{**waits, "status": "True"}], "nominatedNodeName": "n1"}
    assert not preemption.is_preempting({"status": placed})


def test_an_offer_is_small():
    victims = preemption.victims([1] * 99, 0, ["0b0a9ff5-0d4e-4cbb-9d4a-8f2f6b0c1d2e"] * 99)
    assert isinstance(victims, Victims)
    assert preemption.read(chaperon(preemption.encode(victims))) == victims
