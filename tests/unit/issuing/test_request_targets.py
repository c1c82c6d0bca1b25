"""Which Target a request means, and what it costs to find out where there are many."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from tests.apiserver.server import APIServer
from tests.unit.issuing.issuing_environment import SPEC
from tests.unit.scheduling import costs
from vnode.api import objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.issuing import request as requests
from vnode.issuing.request_targets import CLUSTER_INDEX, RequestTargets
from vnode.kube.informer import Informer
from vnode.kube.store import Store
from vnode.runtime.links import Links
from vnode.targets.target_lister import TargetLister

LAST = TargetKey("team", "t9999")


def target(name: str, namespace: str = "team", home: str = "team") -> Object:
    profile = {"namespace": home, "name": "east"}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterProfile": profile}}


def request(name: str = "r") -> Object:
    spec = {**SPEC, "targetRef": None, "targetClusterProfile": {"name": "east"}}
    return {"metadata": {"name": name, "namespace": "team", "uid": name}, "spec": spec}


def setting(targets: int, asked: int = 1) -> tuple[TargetLister, RequestTargets]:
    lister = TargetLister(APIServer("c1", SystemClock()).client())
    for number in range(targets):
        lister.informers[0].store.put(target(f"t{number:04}"))

    store = Store({CLUSTER_INDEX: requests.cluster_index})
    for number in range(asked):
        store.put(request(f"r{number}"))

    stored = cast("Informer", SimpleNamespace(store=store))
    return lister, RequestTargets(stored, lister, Links(), 86400)


def test_a_profile_means_its_first_target_and_a_cluster_target_before_it() -> None:
    lister, found = setting(3)
    lister.informers[0].store.put(target("a", "other", "team"))
    assert found.node_of(request()) == TargetKey("team", "t0000").node_name
    lister.informers[1].store.put(target("z", ""))
    assert found.node_of(request()) == TargetKey("", "z").node_name


def test_of_many_targets_of_a_profile_one_is_looked_at() -> None:
    few, many = (setting(count)[1] for count in (10, 1000))
    for each in (few, many):
        each.node_of(request())

    extra = costs.bytecodes(lambda: many.node_of(request())) - costs.bytecodes(
        lambda: few.node_of(request())
    )
    assert extra < 20 * 990


def test_a_target_that_leaves_looks_up_once_what_its_requests_name() -> None:
    lister, found = setting(1000, 100)
    lister.informers[0].store.put(target(LAST.name))
    asked = found.requests_of(LAST)
    assert len(asked) == 100
    assert found.are_any_for(asked, TargetKey("team", "t0000").node_name)
    assert not found.are_any_for(asked, LAST.node_name)
    once = costs.bytecodes(lambda: found.are_any_for(asked[:1], LAST.node_name))
    assert costs.bytecodes(lambda: found.are_any_for(asked, LAST.node_name)) < 10 * once


def test_requests_that_were_carried_out_elsewhere_are_not_looked_at() -> None:
    def cost(others: int) -> int:
        _lister, found = setting(1, 1 + others)
        for number in range(others):
            found.note(request(f"r{number + 1}"), TargetKey("team", "t0001").node_name)

        found.note(request("r0"), LAST.node_name)
        assert [objects.name(each) for each in found.requests_of(LAST)] == ["r0"]
        return costs.bytecodes(lambda: found.requests_of(LAST))

    assert cost(500) == cost(0)


def test_a_request_counts_for_the_target_by_which_it_was_carried_out_last() -> None:
    _lister, found = setting(1)
    for target_key in (TargetKey("team", "first"), LAST):
        found.note(request("r0"), target_key.node_name)

    assert not found.requests_of(TargetKey("team", "first"))
    assert found.requests_of(LAST)
    found.forget("team/r0")
    assert not found.requests_of(LAST)
    assert not found._carried_out
