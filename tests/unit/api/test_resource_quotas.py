from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, resource_quotas
from vnode.api.errors import ConfigError
from vnode.api.quantities import NANO
from vnode.api.resource_quotas import Quota, QuotaUsage


def container(name: str = "c", limits: dict[str, str] | None = None, **requests: str) -> Any:
    return {"name": name, "resources": {"requests": requests, "limits": limits or {}}}


def pod(*containers: Any, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}


def usage(*containers: Any, **spec: Any) -> QuotaUsage:
    return resource_quotas.usage_of(pod(*containers, **spec), ())


def quota(
    hard: dict[str, str], used: dict[str, str] | None = None, name: str = "q", **spec: Any
) -> Quota:
    obj = {"metadata": {"name": name}, "spec": spec, "status": {"hard": hard, "used": used or {}}}
    return resource_quotas.parse(obj)


def test_a_quota_that_a_pod_seems_to_exceed_says_so_in_words_of_our_own() -> None:
    compute = quota({"cpu": "2", "pods": "9"}, {"cpu": "1500m", "pods": "1"}, "compute")
    assert compute.refusal(usage(container(cpu="600m")), {}) == (
        "no room in ResourceQuota compute for cpu 600m, and 1500m of 2 are used"
    )
    assert compute.refusal(usage(container(cpu="500m")), {}) == ""


def test_all_exceeded_amounts_are_named_in_order_and_what_is_promised_counts_as_used() -> None:
    found = quota({"requests.memory": "2Gi", "pods": "1"}, {"requests.memory": "1Gi"})
    promised = {"requests.memory": 2**30 * NANO, "pods": NANO}
    assert found.refusal(usage(container(memory="1Mi")), promised) == (
        "no room in ResourceQuota q for pods 1, and 1 of 1 are used; "
        "requests.memory 1Mi, and 2Gi of 2Gi are used"
    )


def test_a_pod_counts_by_each_name_that_quotas_have_for_its_resources() -> None:
    counted = usage(
        container(
            limits={"cpu": "2", "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"},
            **{
                "cpu": "1",
                "ephemeral-storage": "1Gi",
                "nvidia.com/gpu": "1",
                "hugepages-2Mi": "4Mi",
            },
        )
    ).amounts
    assert {name: Fraction(amount, NANO) for name, amount in counted.items()} == {
        "pods": 1,
        "count/pods": 1,
        "cpu": 1,
        "requests.cpu": 1,
        "limits.cpu": 2,
        "ephemeral-storage": 2**30,
        "requests.ephemeral-storage": 2**30,
        "requests.nvidia.com/gpu": 1,
        "hugepages-2Mi": 2**22,
        "requests.hugepages-2Mi": 2**22,
    }


def test_init_containers_sidecars_and_overhead_count_as_for_schedulers() -> None:
    sidecar = {**container("s", {"cpu": "3"}, cpu="1"), "restartPolicy": "Always"}
    counted = usage(
        container(limits={"cpu": "1"}, cpu="1"),
        initContainers=[sidecar, container("i", {"cpu": "1"}, cpu="2")],
        overhead={"cpu": "250m", "memory": "1Mi"},
    ).amounts
    assert counted["requests.cpu"] == 3_250 * NANO // 1000
    assert counted["limits.cpu"] == 4_250 * NANO // 1000
    assert counted["requests.memory"] == 2**20 * NANO
    assert "limits.memory" not in counted  # overhead alone is no limit


def test_a_quota_on_cpu_or_memory_makes_them_mandatory_for_each_container() -> None:
    strict = quota({"requests.cpu": "9", "limits.memory": "9Gi", "requests.ephemeral-storage": "1"})
    bare = usage(container("b"), container("a", cpu="1"), initContainers=[container("i")])
    assert strict.refusal(bare, {}) == (
        "ResourceQuota q makes mandatory: limits.memory for: a,b,i; requests.cpu for: b,i"
    )


@pytest.mark.parametrize("whole", [{"requests": {"cpu": "1"}}, {"limits": {"memory": "1Gi"}}])
def test_nothing_is_mandatory_for_containers_of_a_pod_with_resources_of_its_own(whole: Any) -> None:
    strict = quota({"requests.cpu": "9", "limits.memory": "9Gi"})
    assert strict.refusal(usage(container("a"), resources=whole), {}) == ""
    assert strict.refusal(usage(container("a"), resources={"requests": {}}), {}) != ""


def test_only_the_number_of_all_pods_is_certain() -> None:
    full = {"pods": "1", "count/pods": "2", "cpu": "1"}
    assert quota(full, full).certain_refusal({}) == (
        "no room in ResourceQuota q for count/pods 1, and 2 of 2 are used; "
        "pods 1, and 1 of 1 are used"
    )
    assert quota({"pods": "2"}, {"pods": "1"}).certain_refusal({"pods": NANO}) != ""
    assert quota(full, {"cpu": "1"}).certain_refusal({}) == ""
    assert quota(full, full, scopes=["NotTerminating"]).certain_refusal({}) == ""


def test_what_a_pod_has_none_of_it_may_have_however_much_is_used() -> None:
    over = quota({"limits.cpu": "1", "requests.nvidia.com/gpu": "1"}, {"limits.cpu": "5"})
    zero = usage(container(limits={"cpu": "0"}, cpu="0", **{"nvidia.com/gpu": "0"}))
    assert over.refusal(zero, {}) == ""


@pytest.mark.parametrize(
    "name", ["services", "requests.storage", "count/secrets", "requests.example.com", "persistent"]
)
def test_a_quota_of_other_objects_counts_no_pods(name: str) -> None:
    assert not quota({name: "0"}).matches(usage(container()))


def test_a_quota_without_a_status_is_taken_at_its_word() -> None:
    new = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}, "status": {}}
    assert (
        resource_quotas.parse(new)
        .refusal(usage(container()), {})
        .startswith("no room in ResourceQuota")
    )


def test_a_quantity_or_scope_that_cannot_be_read_is_an_error() -> None:
    for bad in (
        {"spec": {"hard": {"pods": "many"}}},
        {
            "spec": {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "Like"}]
                }
            }
        },
    ):
        with pytest.raises(ConfigError):
            resource_quotas.parse(bad)


# --- scopes

HIGH = {"priorityClassName": "high"}
AFFINE = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
CROSSING = {
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "namespaceSelector": {}}}
        ]
    }
}


@pytest.mark.parametrize(
    ("scope", "selected", "other"),
    [
        ("Terminating", usage(activeDeadlineSeconds=1), usage()),
        ("NotTerminating", usage(), usage(activeDeadlineSeconds=1)),
        ("BestEffort", usage(container(cpu="0")), usage(container(limits={"memory": "1"}))),
        ("NotBestEffort", usage(initContainers=[container(cpu="1")]), usage(container())),
        ("PriorityClass", usage(**HIGH), usage()),
        ("CrossNamespacePodAffinity", usage(affinity=CROSSING), usage(affinity=AFFINE)),
    ],
)
def test_a_scope_selects_pods(scope: str, selected: QuotaUsage, other: QuotaUsage) -> None:
    scoped = quota({"pods": "0"}, scopes=[scope])
    assert scoped.matches(selected)
    assert not scoped.matches(other)


@pytest.mark.parametrize("scope", ["VolumeAttributesClass", "Tomorrow"])
def test_a_scope_of_other_objects_or_an_unknown_one_selects_no_pod(scope: str) -> None:
    assert not quota({"pods": "0"}, scopes=[scope]).matches(usage())


@pytest.mark.parametrize(
    ("operator", "values", "selected"),
    [
        ("In", ["high", "low"], [True, False]),
        ("NotIn", ["high"], [False, True]),
        ("NotIn", ["low"], [True, True]),
        ("Exists", [], [True, False]),
        ("DoesNotExist", [], [False, True]),
    ],
)
def test_a_scope_selects_priority_classes_by_name(
    operator: str, values: list[str], selected: list[bool]
) -> None:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    scoped = quota({"pods": "0"}, scopeSelector={"matchExpressions": [expression]})
    assert [scoped.matches(usage(**HIGH)), scoped.matches(usage())] == selected


def test_all_scopes_of_a_quota_must_select_a_pod() -> None:
    both = quota({"pods": "0"}, scopes=["Terminating", "BestEffort"])
    assert both.matches(usage(activeDeadlineSeconds=1))
    assert not both.matches(usage(container(cpu="1"), activeDeadlineSeconds=1))


def test_the_affinity_that_counts_is_that_of_the_delegate() -> None:
    proxy = pod(affinity=AFFINE)
    saved = {"metadata": {}, "spec": {"affinity": CROSSING}}
    proxy["metadata"]["annotations"] = {keys.SOURCE_POD_MANIFEST: json.dumps(saved)}
    scoped = quota({"pods": "0"}, scopes=["CrossNamespacePodAffinity"])
    assert scoped.matches(resource_quotas.usage_of(proxy, ()))
    proxy["metadata"]["annotations"] = {keys.SOURCE_POD_MANIFEST: "no pod"}
    assert not scoped.matches(resource_quotas.usage_of(proxy, ()))


# --- for all pods and quotas

NAMES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")
MILLIS = st.integers(0, 3_000)
CONTAINERS = st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, MILLIS)), max_size=3)
HARD = st.dictionaries(
    st.sampled_from(["pods", "cpu", "requests.memory", "requests.example.com/gpu"]),
    st.integers(0, 6_000),
    min_size=1,
)


def milli(amounts: dict[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" for name, amount in amounts.items()}


def pods_of(containers: list[dict[str, int]]) -> QuotaUsage:
    return usage(*(container(f"c{n}", {}, **milli(each)) for n, each in enumerate(containers)))


def wanted(containers: list[dict[str, int]], name: str) -> int:
    """Return what containers want of a resource, in thousandths, by Kubernetes' documentation."""
    if name == "pods":
        return 1000

    return sum(each[name.removeprefix("requests.")] for each in containers)


@given(HARD, HARD, st.lists(CONTAINERS, max_size=4), CONTAINERS)
def test_a_pod_is_refused_exactly_if_a_sum_would_be_too_large(
    hard: dict[str, int],
    used: dict[str, int],
    others: list[list[dict[str, int]]],
    new: list[dict[str, int]],
) -> None:
    promised = {n: sum(wanted(c, n) for c in others) * NANO // 1000 for n in hard}
    exceeded = {
        n
        for n in hard
        if wanted(new, n) > 0
        and used.get(n, 0) + sum(wanted(c, n) for c in (*others, new)) > hard[n]
    }
    refusal = quota(milli(hard), milli(used)).refusal(pods_of(new), promised)
    assert bool(refusal) == bool(exceeded)
    assert all(f"{name} " in refusal for name in exceeded)


@given(HARD, HARD, HARD, HARD, CONTAINERS)
def test_a_quota_that_lets_a_pod_in_by_now_has_more_than_before(
    hard: dict[str, int],
    used: dict[str, int],
    new_hard: dict[str, int],
    new_used: dict[str, int],
    containers: list[dict[str, int]],
) -> None:
    before, after = quota(milli(hard), milli(used)), quota(milli(new_hard), milli(new_used))
    counted = pods_of(containers)
    if before.refusal(counted, {}) and not after.refusal(counted, {}):
        assert after.has_more_than(before)


@given(HARD, st.lists(CONTAINERS, max_size=8))
def test_pods_that_were_let_in_one_by_one_never_exceed_a_quota(
    hard: dict[str, int], pods: list[list[dict[str, int]]]
) -> None:
    limited, promised = quota(milli(hard)), dict.fromkeys(hard, 0)
    for counted in map(pods_of, pods):
        if not limited.refusal(counted, promised):
            promised = {n: promised[n] + counted.amounts.get(n, 0) for n in hard}

    assert all(promised[name] <= limited.hard[name] for name in hard)
