"""Which gang a pod is of, and how many of it start together."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.gangs.pods import member, pod, table
from vnode.api import keys
from vnode.api.objects import Object
from vnode.gangs import membership, pod_groups
from vnode.gangs.membership import GangKey, GroupApi


def key(api: GroupApi) -> GangKey:
    return GangKey(api, "default", "g")


@pytest.mark.parametrize(
    ("named", "api"),
    [
        ({"annotations": {keys.GANG: "g", keys.GANG_MINIMUM: "2"}}, GroupApi.ANNOTATION),
        ({"labels": {keys.POD_GROUP: "g"}}, GroupApi.COSCHEDULING),
        ({"spec": {"schedulingGroup": {"podGroupName": "g"}}}, GroupApi.NATIVE),
        ({"annotations": {keys.VOLCANO_GROUPS[0]: "g"}}, GroupApi.VOLCANO),
        ({"annotations": {keys.VOLCANO_GROUPS[1]: "g"}}, GroupApi.VOLCANO),
    ],
)
def test_a_pod_names_its_gang_in_one_of_five_places(named: dict[str, Any], api: GroupApi) -> None:
    found = membership.of(pod("a", **named))
    assert found is not None
    assert (found.key, found.problem) == (key(api), "")


def test_a_pod_that_names_none_is_in_none() -> None:
    assert membership.of(pod("a", labels={"app": "a"}, annotations={keys.ELECT: ""})) is None
    assert membership.of(pod("a", annotations={keys.GANG: ""})) is None


def test_a_pod_that_names_two_gangs_is_told_so() -> None:
    both: dict[str, Any] = {
        "labels": {keys.POD_GROUP: "g"},
        "annotations": {keys.VOLCANO_GROUPS[0]: "h"},
    }
    found = membership.of(pod("a", **both))
    assert found is not None
    assert "names gang g by label" in found.problem
    assert "and h by annotation" in found.problem


def test_a_pod_that_names_its_gang_twice_is_in_it() -> None:
    both: dict[str, Any] = {
        "labels": {keys.POD_GROUP: "g"},
        "annotations": {keys.VOLCANO_GROUPS[0]: "g"},
    }
    found = membership.of(pod("a", **both))
    assert found is not None
    assert (found.key.api, found.problem) == (GroupApi.COSCHEDULING, "")


@pytest.mark.parametrize("text", ["0", "-1", "2.5", "", "two", "1" * 30, "٣", "100001"])
def test_a_minimum_that_is_none_is_told_with_what_to_write(text: str) -> None:
    bad = pod("a", annotations={keys.GANG: "g", keys.GANG_MINIMUM: text})
    [gang] = table(bad).values()
    assert "write how many pods" in table(bad).hold(bad)
    assert gang.key == key(GroupApi.ANNOTATION)


def test_pods_that_say_different_minimums_are_told_so_and_one_that_says_none_is_fine() -> None:
    pods = member("a", 2), member("b", 3)
    assert "(2, 3): give all of them the same" in table(*pods).hold(pods[0])
    pods = member("a", 2), member("b", None)
    assert table(*pods).hold(pods[1]) == ""
    assert "set annotation" in table(member("a", None)).hold(member("a", None))


@pytest.mark.parametrize(
    ("api", "spec", "minimum"),
    [
        (GroupApi.COSCHEDULING, {"minMember": 3}, 3),
        (GroupApi.VOLCANO, {"minMember": 3}, 3),
        (GroupApi.VOLCANO, {}, 1),
        (GroupApi.NATIVE, {"schedulingPolicy": {"gang": {"minCount": 3}}}, 3),
        (GroupApi.NATIVE, {"schedulingPolicy": {"basic": {}}}, pod_groups.NO_GANG),
    ],
)
def test_each_api_has_its_word_for_the_minimum(api: GroupApi, spec: Object, minimum: int) -> None:
    found = pod_groups.standing(key(api), {"spec": spec})
    assert (found.minimum, found.problem) == (minimum, "")


@pytest.mark.parametrize(
    ("api", "spec"),
    [
        (GroupApi.COSCHEDULING, {}),
        (GroupApi.COSCHEDULING, {"minMember": 0}),
        (GroupApi.COSCHEDULING, {"minMember": "3"}),
        (GroupApi.NATIVE, {}),
        (GroupApi.NATIVE, {"schedulingPolicy": {"gang": None}}),
        (GroupApi.NATIVE, {"schedulingPolicy": {"tree": {}}}),
    ],
)
def test_a_group_that_does_not_say_it_is_told_with_what_to_write(
    api: GroupApi, spec: Object
) -> None:
    found = pod_groups.standing(key(api), {"spec": spec})
    assert found.minimum is None
    assert "write" in found.problem


@pytest.mark.parametrize("where", [keys.GANG, *keys.VOLCANO_GROUPS])
def test_a_name_that_is_too_long_is_told_and_is_in_no_message(where: str) -> None:
    found = membership.of(pod("a", annotations={where: "g" * 100_000}))
    assert found is not None
    assert "has 100000 characters: use 253 at most" in found.problem
    assert len(found.key.name) == 253
