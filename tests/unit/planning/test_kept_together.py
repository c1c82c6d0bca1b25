"""Which pods are kept together though no policy says so."""

from __future__ import annotations

from vnode.api.objects import Object
from vnode.planning.kept_together import LABELS, KeptTogether
from vnode.planning.policy import Mode
from vnode.planning.workload_key import planned_workload_of

HEAD = {"ray.io/cluster": "tuning", "ray.io/node-type": "head"}


def pod(**labels: str) -> Object:
    return {"metadata": {"namespace": "team-a", "name": "p", "labels": labels}}


def test_pods_of_a_group_are_one_workload_that_is_kept_together() -> None:
    together = KeptTogether(LABELS)
    worker = HEAD | {"ray.io/node-type": "worker"}
    workloads = {planned_workload_of(p, together.of(p)) for p in (pod(**HEAD), pod(**worker))}
    assert [w.workload for w in workloads if w] == ["label/team-a/ray.io/cluster=tuning"]
    policy = together.of(pod(**HEAD))
    assert policy is not None
    assert policy.mode is Mode.SINGLE


def test_pods_without_such_a_label_have_no_policy() -> None:
    assert KeptTogether(LABELS).of(pod(app="web")) is None
    assert KeptTogether(LABELS).of({"metadata": {"name": "p"}}) is None


def test_jobs_of_a_jobset_that_exclude_each_other_are_groups_of_their_own() -> None:
    together = KeptTogether(LABELS)
    jobs = []
    for key in ("1", "2"):
        made = pod(**{"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/job-key": key})
        assert (policy := together.of(made)) is not None
        assert policy.group_by == "jobset.sigs.k8s.io/jobset-name"
        exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"
        made["metadata"]["annotations"] = {exclusive: "multicluster.admiralty.io/target-name"}
        workload = planned_workload_of(made, together.of(made))
        jobs.append(workload.workload if workload else "")

    assert jobs == [f"label/team-a/jobset.sigs.k8s.io/job-key={key}" for key in ("1", "2")]


def test_of_several_labels_the_first_of_the_list_counts() -> None:
    both = pod(b="1", a="2")
    policy = KeptTogether(("a", "b")).of(both)
    assert policy is not None
    assert policy.group_by == "a"


def test_no_labels_keep_nothing_together() -> None:
    assert not KeptTogether(())
    assert KeptTogether(()).of(pod(**HEAD)) is None


def test_the_key_of_such_a_policy_is_that_of_no_object() -> None:
    policy = KeptTogether(("a",)).of(pod(a="1"))
    assert policy is not None
    assert " " in policy.key
