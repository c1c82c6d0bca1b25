from __future__ import annotations

from typing import Any

import pytest

from vnode.api import keys, taints

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "yes", "operator": "Equal", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "Sometimes"}, False),
    ],
)
def test_tolerations_match_as_in_the_scheduler(toleration: dict[str, Any], expected: bool) -> None:
    assert taints.tolerates(toleration, TAINT) is expected


def test_an_absent_value_equals_an_empty_one() -> None:
    assert taints.tolerates({"key": "k", "value": ""}, {"key": "k", "effect": "NoExecute"})


@pytest.mark.parametrize(
    ("operator", "mine", "other", "expected"),
    [
        ("Gt", "5", "7", True),
        ("Gt", "7", "7", False),
        ("Lt", "5", "-7", True),
        ("Lt", "5", "05", False),
        ("Gt", "x", "7", False),
    ],
)
def test_numbers_can_be_compared(operator: str, mine: str, other: str, expected: bool) -> None:
    toleration = {"key": "sla", "operator": operator, "value": mine}
    assert taints.tolerates(toleration, {"key": "sla", "value": other}) is expected


def test_the_first_hard_taint_without_a_toleration_is_found() -> None:
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    evict = {"key": "evict", "effect": "NoExecute"}
    assert taints.untolerated([soft, TAINT, evict], [{"key": "gpu", "operator": "Exists"}]) is evict
    assert taints.untolerated([soft, TAINT], [{"operator": "Exists"}]) is None
    assert taints.untolerated([soft], []) is None
    assert taints.untolerated([soft], [], (taints.PREFER_NO_SCHEDULE,)) is soft


def test_the_webhooks_toleration_covers_the_providers_taint() -> None:
    toleration = {"key": keys.PROVIDER_LABEL, "value": keys.PROVIDER}
    assert taints.tolerates(toleration, keys.PROVIDER_TAINT)
    assert taints.describe(keys.PROVIDER_TAINT) == "{virtual-kubelet.io/provider: admiralty}"


def test_a_taint_of_thousands_of_digits_is_no_number() -> None:
    toleration = {"key": "gpu", "operator": "Gt", "value": "1"}
    assert taints.tolerates(toleration, {**TAINT, "value": "2"})
    assert not taints.tolerates(toleration, {**TAINT, "value": "2" * 5000})
