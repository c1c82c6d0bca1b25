"""Which kube-scheduler the chart runs for candidates, and with which feature gates."""

from __future__ import annotations

import pytest

from tests.chart.helm import one, template
from tests.chart.matrix import DIGEST
from vnode.api.objects import Object


@pytest.mark.parametrize(
    ("version", "tag"),
    [("1.36.3", "v1.36.3"), ("1.35.2-eks-a1b2c3", "v1.35.2"), ("v1.34.1+k3s1", "v1.34.1")],
)
def test_the_candidate_scheduler_is_of_the_clusters_version(version: str, tag: str) -> None:
    deployment = one(template(version=version), "Deployment", "vnode-candidate-scheduler")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.k8s.io/kube-scheduler:{tag}"


@pytest.mark.parametrize(
    ("version", "image", "forgets"),
    [
        ("1.37.2", {}, True),
        ("1.33.0-eks-a1b2c3", {}, True),
        ("1.32.9", {}, False),
        ("1.38.0", {}, False),
        ("1.37.2", {"tag": "v1.31.4"}, False),
        ("1.30.0", {"tag": "v1.34.4", "digest": DIGEST}, True),
        ("1.37.2", {"digest": DIGEST}, False),
    ],
)
def test_a_scheduler_that_forgets_whom_it_preempts_for_preempts_at_once(
    version: str, image: Object, forgets: bool
) -> None:
    rendered = template({"scheduler": {"image": image}}, version=version)
    deployment = one(rendered, "Deployment", "vnode-candidate-scheduler")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    gate = "--feature-gates=SchedulerAsyncPreemption=false"
    assert (gate in container["command"]) is forgets
