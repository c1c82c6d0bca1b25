"""Requests are counted by what became of them, whatever codes a server makes up."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from vnode.kube.request_metrics import RequestMetrics
from vnode.telemetry import metrics, target_series


def sample(name: str, **labels: str) -> float | None:
    return metrics.REGISTRY.get_sample_value(name, labels)


def test_requests_are_counted_by_verb_and_code_and_measured_if_answered():
    requests = RequestMetrics("counted")
    requests.answered("GET", 200, 0.3)
    requests.answered("GET", 404, 0.1)
    requests.unanswered("GET")
    total = "vnode_api_requests_total"
    assert sample(total, api_server="counted", verb="GET", code="200") == 1
    assert sample(total, api_server="counted", verb="GET", code="404") == 1
    assert sample(total, api_server="counted", verb="GET", code="none") == 1
    duration = "vnode_api_request_duration_seconds"
    assert sample(f"{duration}_count", api_server="counted", verb="GET") == 2
    assert sample(f"{duration}_sum", api_server="counted", verb="GET") == pytest.approx(0.4)


def test_codes_that_a_server_makes_up_are_one_series():
    requests = RequestMetrics("inventive")
    for code in range(1000):
        requests.answered("GET", code, 0.1)

    total, labels = "vnode_api_requests_total", {"api_server": "inventive", "verb": "GET"}
    assert sample(total, **labels, code="other") == 1000 - len(HTTPStatus)
    assert sample(total, **labels, code="503") == 1
    assert sample(total, **labels, code="999") is None
    target_series.forget("inventive")
    target_series.expect("inventive")  # for other tests
