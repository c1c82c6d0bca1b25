"""Which workload a pod belongs to, by its labels and its controller."""

from __future__ import annotations

import pytest

from vnode.api.objects import Object
from vnode.planning.workload_key import workload_of


def pod(
    kind: str = "", name: str = "", api: str = "apps/v1", labels: dict[str, str] | None = None
) -> Object:
    owner = {"apiVersion": api, "kind": kind, "name": name, "controller": True, "uid": "u"}
    metadata = {"namespace": "default", "name": "web-x1-abc", "labels": labels or {}}
    return {"metadata": metadata | ({"ownerReferences": [owner]} if kind else {})}


def test_a_deployment_owns_the_replica_sets_of_a_rollout() -> None:
    old = pod("ReplicaSet", "web-5d4f", labels={"pod-template-hash": "5d4f"})
    new = pod("ReplicaSet", "web-77b9", labels={"pod-template-hash": "77b9"})
    assert workload_of(old) == workload_of(new) == "deployment/default/web"


def test_a_rollout_of_argo_owns_its_replica_sets() -> None:
    canary = pod("ReplicaSet", "web-5d4f", labels={"rollouts-pod-template-hash": "5d4f"})
    assert workload_of(canary) == "rollout.argoproj.io/default/web"


@pytest.mark.parametrize("labels", [{}, {"pod-template-hash": "77b9"}, {"pod-template-hash": ""}])
def test_a_replica_set_that_no_deployment_made_is_itself(labels: dict[str, str]) -> None:
    bare = pod("ReplicaSet", "web-5d4f", labels=labels)
    assert workload_of(bare) == "replicaset/default/web-5d4f"


def test_a_replica_set_named_by_the_hash_alone_is_itself() -> None:
    bare = pod("ReplicaSet", "-5d4f", labels={"pod-template-hash": "5d4f"})
    assert workload_of(bare) == "replicaset/default/-5d4f"


@pytest.mark.parametrize(
    ("kind", "api", "key"),
    [
        ("StatefulSet", "apps/v1", "statefulset/default/db"),
        ("Job", "batch/v1", "job/default/db"),
        ("ReplicationController", "v1", "replicationcontroller/default/db"),
        ("Job", "batch.volcano.sh/v1alpha1", "job.batch.volcano.sh/default/db"),
        ("ReplicaSet", "example.com/v1", "replicaset.example.com/default/db"),
    ],
)
def test_others_are_what_controls_their_pods(kind: str, api: str, key: str) -> None:
    assert workload_of(pod(kind, "db", api)) == key


def test_a_bare_pod_is_a_workload_by_itself() -> None:
    assert workload_of(pod()) == "pod/default/web-x1-abc"


def test_a_label_groups_pods_of_several_owners() -> None:
    labels = {"jobset.sigs.k8s.io/jobset-name": "train"}
    workers = [pod("Job", f"train-{n}", "batch/v1", labels) for n in range(2)]
    workers.append(pod(labels=labels))
    keys = {workload_of(worker, "jobset.sigs.k8s.io/jobset-name") for worker in workers}
    assert keys == {"label/default/jobset.sigs.k8s.io/jobset-name=train"}


def test_a_pod_without_the_label_goes_by_its_owner() -> None:
    assert workload_of(pod("Job", "train-0", "batch/v1"), "group") == "job/default/train-0"


def test_an_owner_that_only_owns_is_no_controller() -> None:
    owned = pod("Job", "train")
    owned["metadata"]["ownerReferences"][0]["controller"] = False
    assert workload_of(owned) == "pod/default/web-x1-abc"


def test_what_an_owner_reference_says_is_cleaned_and_bounded() -> None:
    key = workload_of(pod("Job", "a\x1b[31m\nb" + "x" * 1000, "batch/v1"))
    assert "\x1b" not in key
    assert "\n" not in key
    assert len(key) < 300
