"""What a target's API server says of quotas: read if it has their form, and bounded."""

from __future__ import annotations

from typing import Any

import pytest

from vnode.api import limit_ranges, quota_shapes, resource_quotas

METADATA = {"name": "q", "namespace": "n", "uid": "u", "resourceVersion": "1"}


def quota(status: Any = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": METADATA, "spec": spec, "status": status or {}}


def test_quotas_and_limits_of_an_honest_server_are_read() -> None:
    scopes = {"matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]}
    found = quota(
        {"hard": {"pods": "1", "cpu": 2}}, scopes=["NotTerminating"], scopeSelector=scopes
    )
    assert quota_shapes.is_quota(found)
    assert resource_quotas.parse(quota_shapes.trim_quota(found)) == resource_quotas.parse(found)
    limits = [{"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]
    given = {"metadata": METADATA, "spec": {"limits": limits}}
    assert quota_shapes.is_limit_range(given)
    assert limit_ranges.parse(quota_shapes.trim_limit_range(given)) == limit_ranges.parse(given)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        {"metadata": {"name": "q"}},
        quota(hard=["pods"]),
        quota(hard={"pods": None}),
        quota({"used": {"pods": "many"}, "hard": {"pods": "1"}}),
        quota(scopes="BestEffort"),
        quota(scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass"}]}),
        {**quota(), "metadata": {**METADATA, "name": "a/b"}},
        {**quota(), "metadata": {**METADATA, "namespace": ""}},
    ],
)
def test_what_is_no_quota_is_not_read(bad: Any) -> None:
    assert not quota_shapes.is_quota(bad)


@pytest.mark.parametrize(
    "limits", [{}, [{"max": {}}], [{"type": "Pod", "max": {"cpu": "x"}}], [{"type": 7}], "all"]
)
def test_what_is_no_limit_range_is_not_read(limits: Any) -> None:
    assert not quota_shapes.is_limit_range({"metadata": METADATA, "spec": {"limits": limits}})


def test_little_is_kept_of_a_large_one() -> None:
    many = {f"requests.example.com/{n}": "1" for n in range(5_000)}
    many["x" * 10_000] = "1"
    kept = quota_shapes.trim_quota(quota({"hard": many, "used": many}, scopes=["a"] * 5_000))
    assert len(kept["status"]["hard"]) == len(kept["status"]["used"]) == quota_shapes.MOST_NAMES
    assert len(kept["spec"]["scopes"]) == quota_shapes.MOST_ITEMS
    limits = {"metadata": METADATA, "spec": {"limits": [{"type": "Pod", "max": many}] * 5_000}}
    kept_limits = quota_shapes.trim_limit_range(limits)["spec"]["limits"]
    assert len(kept_limits) == quota_shapes.MOST_ITEMS
    assert len(kept_limits[0]["max"]) == quota_shapes.MOST_NAMES
    kept_amounts = sum(len(each.get("max", ())) for each in kept_limits)
    assert kept_amounts == quota_shapes.MOST_LIMITS
