from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import limit_ranges, resource_quotas
from vnode.api.errors import ConfigError
from vnode.api.limit_ranges import LimitRange


def limit_range(type_: str = "Container", **limits: Any) -> LimitRange:
    obj = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": type_, **limits}]}}
    return limit_ranges.parse(obj)


def container(requests: Any = None, limits: Any = None) -> Any:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}


def violations(found: LimitRange, *containers: Any, **spec: Any) -> list[str]:
    spec = limit_ranges.apply_defaults({"containers": [*containers], **spec}, [found])
    return found.violations(spec)


def test_containers_get_the_limits_and_requests_that_they_lack_and_no_others() -> None:
    given_ = limit_range(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})
    spec = {"containers": [container({"cpu": "3"}, {"memory": "2Gi"}), {"name": "bare"}]}
    first, second = limit_ranges.apply_defaults(spec, [given_])["containers"]
    assert first["resources"] == {
        "requests": {"cpu": "3"},
        "limits": {"cpu": "2", "memory": "2Gi"},
    }
    assert second["resources"] == {
        "requests": {"cpu": "1"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }
    assert spec["containers"][1] == {"name": "bare"}


def test_defaults_count_in_quotas_and_fulfil_what_they_make_mandatory() -> None:
    obj = {"metadata": {"name": "q"}, "status": {"hard": {"requests.cpu": "1"}}}
    quota = resource_quotas.parse(obj)
    pod = {"spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}}
    bare = resource_quotas.usage_of(pod, ())
    assert "makes mandatory: requests.cpu for: a,i" in quota.refusal(bare, {})
    usual = limit_range(default={"cpu": "3"}, defaultRequest={"cpu": "2"})
    filled = resource_quotas.usage_of(pod, [usual])
    assert quota.refusal(filled, {}) == (
        "no room in ResourceQuota q for requests.cpu 2, and 0 of 1 are used"
    )


@pytest.mark.parametrize(
    ("limits", "requested", "limited", "text"),
    [
        ({"min": {"cpu": "1"}}, {}, {}, "minimum cpu usage per Container is 1, but no request"),
        ({"min": {"cpu": "1"}}, {"cpu": "500m"}, {}, "is 1, but request is 500m"),
        ({"min": {"memory": "1Gi"}}, {"memory": "1Gi"}, {"memory": "1Mi"}, "but limit is 1Mi"),
        ({"max": {"cpu": "1"}}, {}, {}, "maximum cpu usage per Container is 1, but no limit"),
        ({"max": {"cpu": "1"}}, {}, {"cpu": "2"}, "is 1, but limit is 2"),
        ({"max": {"cpu": "1"}}, {"cpu": "2"}, {"cpu": "1"}, "is 1, but request is 2"),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "1"},
            {"cpu": "3"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {}, {"cpu": "3"}, "but no request is specified"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "3"}, {}, "but no limit is specified"),
    ],
)
def test_what_breaks_a_limit_is_said(limits: Any, requested: Any, limited: Any, text: str) -> None:
    (found,) = violations(limit_range(**limits), container(requested, limited))
    assert text in found


def test_the_bounds_themselves_are_allowed() -> None:
    bounds = limit_range(
        min={"cpu": "1"}, max={"cpu": "2"}, maxLimitRequestRatio={"cpu": "2"}, default={"cpu": "2"}
    )
    assert violations(bounds, container({"cpu": "1"})) == []


def test_limits_of_pods_are_about_sums_without_overhead() -> None:
    whole = limit_range("Pod", max={"cpu": "2"})
    pair = [container({"cpu": "1"}, {"cpu": "1"})] * 2
    assert violations(whole, *pair, overhead={"cpu": "9"}) == []
    (found,) = violations(whole, *pair, container({}, {"cpu": "500m"}))
    assert found == "maximum cpu usage per Pod is 2, but limit is 2500m"


def test_limits_of_claims_are_not_about_pods() -> None:
    assert violations(limit_range("PersistentVolumeClaim", max={"storage": "1"}), container()) == []


def test_a_default_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ConfigError):
        limit_range(default={"cpu": "some"})


MILLIS = st.integers(1, 4000)


@given(MILLIS, MILLIS, MILLIS, MILLIS)
def test_a_container_is_refused_exactly_if_it_is_out_of_bounds(
    least: int, most: int, request: int, limit: int
) -> None:
    bounds = limit_range(min={"cpu": f"{least}m"}, max={"cpu": f"{most}m"})
    found = violations(bounds, container({"cpu": f"{request}m"}, {"cpu": f"{limit}m"}))
    fits = all(least <= amount <= most for amount in (request, limit))
    assert (found == []) == fits


@given(MILLIS, MILLIS, st.integers(1, 9))
def test_a_ratio_is_kept_to_the_last_digit(request: int, limit: int, ratio: int) -> None:
    bounds = limit_range(maxLimitRequestRatio={"cpu": str(ratio)})
    found = violations(bounds, container({"cpu": f"{request}m"}, {"cpu": f"{limit}m"}))
    assert (found == []) == (limit <= ratio * request)
