"""What is applied for a wish."""

from __future__ import annotations

import yaml

from tests.faults import workloads
from tests.faults.plan import JobTerms, WantedWorkload, WorkloadKind
from vnode.api import keys, objects


def test_a_pod_that_may_be_in_one_target_only_says_so_to_the_proxy_scheduler() -> None:
    body = workloads.build(WantedWorkload("web", WorkloadKind.POD, on="c3", patience=5))
    constraints = yaml.safe_load(objects.annotations(body)[keys.PROXY_CONSTRAINTS])
    assert constraints["nodeSelector"] == {keys.TARGET_NAME: "c3"}
    assert len(constraints["tolerations"]) == 3
    assert "nodeSelector" not in body["spec"]


def test_a_job_has_the_terms_that_were_drawn() -> None:
    plain = workloads.build(WantedWorkload("work", WorkloadKind.JOB, 3))["spec"]
    assert plain["backoffLimit"] == 1000
    assert not plain.keys() & {"completionMode", "podFailurePolicy", "podReplacementPolicy"}
    terms = JobTerms(8, indexed=True, ignores_disruptions=True, replaces_failed=True)
    spec = workloads.build(WantedWorkload("work", WorkloadKind.JOB, 3, job=terms))["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["backoffLimit"] == 0
    actions = [rule["action"] for rule in spec["podFailurePolicy"]["rules"]]
    assert actions == ["Ignore", "FailJob"]
    assert objects.annotations(spec["template"])["pod-complete.stage.kwok.x-k8s.io/delay"] == "8s"


def test_a_budget_is_for_the_pods_of_its_workload() -> None:
    budget = workloads.budget(WantedWorkload("web", WorkloadKind.DEPLOYMENT, 4, budget=True))
    assert budget["spec"] == {
        "maxUnavailable": 1,
        "selector": {"matchLabels": {"app": "web"}},
    }
