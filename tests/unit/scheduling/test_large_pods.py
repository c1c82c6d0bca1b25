"""What it takes to hold the largest pods to the most quotas and limits that a target has."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from tests import computing
from vnode.api import keys, limit_ranges, resource_quotas
from vnode.api.objects import Object
from vnode.scheduling.quota_rules import MOST
from vnode.scheduling.quotas import Quotas

MANDATORY: Final = ("cpu", "memory", "requests.cpu", "limits.cpu", "limits.memory")


def limit_range(amounts: int, **fields: Any) -> Object:
    default = {f"example.com/{number}": "1" for number in range(amounts)}
    items = [{"type": "Container", "default": default, **fields}]
    return {"metadata": {"name": "l"}, "spec": {"limits": items}}


def quota(*scopes: str, name: str = "q") -> Object:
    hard = dict.fromkeys(MANDATORY, "1")
    return {"metadata": {"name": name}, "spec": {"hard": hard, "scopes": list(scopes)}}


def pod(containers: int, **annotations: str) -> Object:
    metadata = {"name": "p", "namespace": "shop", "uid": "p", "annotations": annotations}
    listed = [{"name": f"c{number}", "image": "i"} for number in range(containers)]
    return {"metadata": metadata, "spec": {"containers": listed}}


def ruled(*scopes: str) -> Quotas:
    """Return a namespace with as many quotas and limits as are read."""
    quotas = Quotas()
    for number in range(10):
        limits = limit_ranges.parse(limit_range(99, min={"cpu": "1"}))
        quotas.set_limit_range("x", "shop", f"l{number}", limits)

    for number in range(MOST):
        name = f"q{number}"
        found = resource_quotas.parse(quota(*scopes, name=name))
        quotas.set_quota("x", "shop", name, found)

    return quotas


@pytest.mark.parametrize("containers", [4, 100, 8_000])
def test_the_largest_pods_are_soon_held_to_the_most_rules(containers: int) -> None:
    quotas, large = ruled("BestEffort"), pod(containers)
    with computing.within(0.2):
        assert "makes mandatory" in quotas.waits(large, "x", 0, asks=False)


def test_a_large_manifest_is_read_once_for_all_quotas() -> None:
    terms = [{"topologyKey": "rack", "namespaces": ["other"]}] * 4_000
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    text = msgspec.json.encode({"spec": {"affinity": affinity}}).decode()
    quotas, large = ruled("CrossNamespacePodAffinity"), pod(1, **{keys.SOURCE_POD_MANIFEST: text})
    with computing.within(0.2):
        assert "makes mandatory" in quotas.waits(large, "x", 0, asks=False)


def test_of_thousands_of_containers_that_lack_something_few_are_named() -> None:
    found = resource_quotas.parse(quota()).refusal(resource_quotas.usage_of(pod(8_000), ()), {})
    assert " and 7980 more" in found
    assert len(found) < 1_500


def test_pods_of_a_usual_size_are_held_to_limits_and_larger_ones_are_left_to_the_target() -> None:
    limits = [limit_ranges.parse(limit_range(10, max={"cpu": "1"}))]
    assert resource_quotas.usage_of(pod(100), limits).violations
    assert not resource_quotas.usage_of(pod(1_000), limits).violations
