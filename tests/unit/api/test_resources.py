from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import resources

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "x/gpu"]), st.integers(0, 99))


def container(**requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def test_containers_add_up_in_millicores_and_bytes() -> None:
    asked = resources.pod_requests(
        pod(containers=[container(cpu="100m", memory="1Ki"), container(cpu="1")])
    )
    assert asked == {"cpu": 1100, "memory": 1024, "pods": 1}


def test_a_pod_that_asks_for_nothing_still_is_one_pod() -> None:
    assert resources.pod_requests({}) == {"pods": 1}
    assert resources.pod_requests(pod(containers=[{"name": "a", "resources": None}])) == {"pods": 1}


def test_the_largest_init_container_counts_if_it_is_more_than_all_containers() -> None:
    asked = resources.pod_requests(
        pod(
            containers=[container(cpu="1", memory="1")],
            initContainers=[container(cpu="3"), container(cpu="2", memory="5")],
        )
    )
    assert asked == {"cpu": 3000, "memory": 5, "pods": 1}


def test_sidecars_run_beside_the_containers_and_the_later_init_containers() -> None:
    sidecar = {**container(cpu="1"), "restartPolicy": "Always"}
    first = container(cpu="4")
    second = container(cpu="4")
    asked = resources.pod_requests(
        pod(containers=[container(cpu="2")], initContainers=[first, sidecar, second])
    )
    assert asked["cpu"] == 5000
    asked = resources.pod_requests(
        pod(containers=[container(cpu="2")], initContainers=[first, sidecar])
    )
    assert asked["cpu"] == 4000
    asked = resources.pod_requests(pod(containers=[container(cpu="2")], initContainers=[sidecar]))
    assert asked["cpu"] == 3000


def test_requests_of_the_pod_replace_those_of_its_containers_and_overhead_is_added() -> None:
    asked = resources.pod_requests(
        pod(
            containers=[container(cpu="2", memory="5", **{"x/gpu": "1"})],
            resources={"requests": {"cpu": "1", "x/gpu": "7"}},
            overhead={"cpu": "250m"},
        )
    )
    assert asked == {"cpu": 1250, "memory": 5, "x/gpu": 1, "pods": 1}


def test_a_list_reads_and_writes_canonically() -> None:
    listed = {"cpu": "8", "memory": "16393212Ki", "pods": "110", "hugepages-2Mi": "0"}
    assert resources.format_list(resources.parse(listed)) == listed
    assert resources.format_list({"cpu": 1500, "ephemeral-storage": 2**30}) == {
        "cpu": "1500m",
        "ephemeral-storage": "1Gi",
    }
    assert resources.parse(None) == {}


def test_what_is_short_is_named_and_what_is_not_asked_for_never_is() -> None:
    free = {"cpu": 100, "memory": -5}
    assert resources.insufficient({"cpu": 100, "memory": 0}, free) == []
    assert resources.insufficient({"memory": 1, "cpu": 101, "x/gpu": 1}, free) == [
        "cpu",
        "memory",
        "x/gpu",
    ]


def test_the_largest_is_taken_resource_by_resource() -> None:
    assert resources.largest([{"cpu": 1, "memory": 9}, {"cpu": 2}]) == {"cpu": 2, "memory": 9}


@given(AMOUNTS, AMOUNTS)
def test_subtracting_what_was_added_gives_the_same_amounts(
    left: dict[str, int], right: dict[str, int]
) -> None:
    back = resources.subtract(resources.add(left, right), right)
    assert {n: a for n, a in back.items() if a} == {n: a for n, a in left.items() if a}


@given(AMOUNTS, AMOUNTS)
def test_no_shortage_leaves_nothing_negative(asked: dict[str, int], free: dict[str, int]) -> None:
    left = resources.subtract(free, asked)
    assert (not resources.insufficient(asked, free)) == (
        all(amount >= 0 for amount in left.values())
        and all(not amount for name, amount in asked.items() if name not in free)
    )


INIT = st.lists(st.tuples(st.booleans(), AMOUNTS), max_size=6)


@given(INIT)
def test_init_containers_take_the_most_of_all_moments(listed: list[Any]) -> None:
    spec = [
        {
            "restartPolicy": "Always" if is_sidecar else None,
            **container(**{name: str(amount) for name, amount in amounts.items()}),
        }
        for is_sidecar, amounts in listed
    ]
    sidecars: dict[str, int] = {}
    moments = []
    for is_sidecar, amounts in listed:
        moments.append(resources.add(sidecars, amounts))
        sidecars = moments[-1] if is_sidecar else sidecars

    wanted = resources.largest(moments)
    found = resources.in_nano({"initContainers": spec}, resources.REQUESTS)
    assert {name: amount // 10**9 for name, amount in found.items()} == wanted


def test_thousands_of_init_containers_are_not_compared_each_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, largest = list[int](), resources.largest

    def counting(lists: Any) -> Any:
        looked.extend(map(len, lists := list(lists)))
        return largest(lists)

    monkeypatch.setattr(resources, "largest", counting)
    listed = [container(**{f"example.com/r{number}": "1"}) for number in range(1_000)]
    sidecars = [{**each, "restartPolicy": "Always"} for each in listed]
    found = resources.pod_requests(pod(initContainers=[*sidecars, *listed]))
    assert found["example.com/r7"] == 2
    assert sum(looked) <= 2 * 1_000
