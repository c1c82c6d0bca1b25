"""Two schedulers give away the room of one node, and its kubelet has the last word."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests import kit
from tests.realnode.cluster import NodeCluster, pod
from vnode.api import keys, kinds, objects, resources
from vnode.api.objects import Object

CLASSES = {"two-schedulers-high": 1000, "two-schedulers-low": 10}
HIGH, LOW = CLASSES
SLEEP = "exec sleep 1000"
ROOM = 200  # millicores that are left


@pytest.fixture(scope="module")
def cpu(target: NodeCluster) -> int:
    """Return the millicores of the real node that are not asked for yet."""
    (node,) = target.get("nodes")["items"]
    total = resources.parse(objects.status(node)["allocatable"])["cpu"]
    pods = target.get("pods", "-A")["items"]
    return total - sum(
        resources.pod_requests(each).get("cpu", 0) for each in pods if not objects.is_finished(each)
    )


@pytest.fixture
def classes(source: NodeCluster, target: NodeCluster) -> Iterator[None]:
    for cluster in (source, target):
        for name, value in CLASSES.items():
            cluster.apply(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": kinds.PRIORITY_CLASSES.kind,
                    "metadata": {"name": name},
                    "value": value,
                }
            )

    yield
    for cluster in (source, target):
        cluster.ask("delete", "priorityclass", *CLASSES)


def asking(made: Object, millicores: int) -> Object:
    objects.spec(made)["containers"][0]["resources"] = {"requests": {"cpu": f"{millicores}m"}}
    return made


def test_a_job_does_not_see_that_its_pod_was_rejected_and_made_anew(
    source: NodeCluster, target: NodeCluster, cpu: int
):
    """A pod that somebody else binds beside the scheduler takes the room of a whole node."""
    (node,) = target.get("nodes")["items"]
    made = asking(pod("", "true", restartPolicy="Never"), cpu - ROOM)
    template = {
        "metadata": {"annotations": objects.annotations(made)},
        "spec": objects.spec(made),
    }
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}]
    spec = {"backoffLimit": 0, "podFailurePolicy": {"rules": rules}, "template": template}
    waiting = asking(pod("holder", SLEEP), cpu - ROOM)
    waiting["metadata"]["annotations"] = {}
    target.apply(waiting)
    target.ask("wait", "--for=condition=Ready", "pod/holder", kit.TIMEOUT)
    source.apply(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "rejected"}, "spec": spec}
    )
    selector = "job-name=rejected"
    source.ask("wait", "--for=create", "pod", "-l", selector, kit.TIMEOUT)
    (proxy,) = source.get("pods", "-l", selector)["items"]
    parent = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    target.ask("wait", "--for=create", "pod", "-l", parent, kit.TIMEOUT)
    (delegate,) = target.get("pods", "-l", parent)["items"]

    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": objects.name(delegate), "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": objects.name(node)},
    }
    path = f"/api/v1/namespaces/default/pods/{objects.name(delegate)}/binding"
    target.ask("create", "--raw", path, "-f", "-", stdin=json.dumps(binding).encode())
    noted = keys.REJECTED.replace(".", r"\.")
    rejected = f"--for=jsonpath={{.metadata.annotations.{noted}}}"
    target.ask("wait", rejected, f"podchaperon/{objects.name(delegate)}", kit.TIMEOUT)
    target.ask("delete", "pod", "holder", kit.TIMEOUT)

    source.ask("wait", "--for=condition=Complete", "job/rejected", kit.TIMEOUT)
    status = source.get("job", "rejected")["status"]
    assert status["succeeded"] == 1
    assert not status.get("failed")
    events = target.get("events", "--field-selector", "reason=OutOfcpu")["items"]
    assert [each["involvedObject"]["uid"] for each in events] == [objects.uid(delegate)]
    source.ask("delete", "job", "rejected", "--wait")


def test_as_many_are_preempted_as_are_needed_and_the_pod_that_preempts_runs(
    source: NodeCluster, target: NodeCluster, cpu: int, classes: None
):
    """The victims belong to a Deployment that makes them again, and has a budget for them."""
    each = cpu // 4 - 20
    labels = {"app": "lower"}
    lower = asking(pod("", SLEEP, priorityClassName=LOW), each)
    template = {"metadata": {"labels": labels}, "spec": objects.spec(lower)}
    selector = {"matchLabels": labels}
    deployment = {"replicas": 4, "selector": selector, "template": template}
    target.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "lower"},
            "spec": deployment,
        }
    )
    target.apply(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "lower"},
            "spec": {"maxUnavailable": 2, "selector": selector},
        }
    )
    target.ask("wait", "--for=jsonpath={.status.readyReplicas}=4", "deploy/lower", kit.TIMEOUT)

    source.apply(asking(pod("higher", SLEEP, priorityClassName=HIGH), each + each // 2))
    source.ask("wait", "--for=condition=Ready", "pod/higher", kit.TIMEOUT)

    events = target.get("events", "--field-selector", "reason=Preempted")["items"]
    victims = {found["involvedObject"]["name"] for found in events}
    assert len(victims) == 2
    rejected = target.get("events", "--field-selector", "reason=OutOfcpu")["items"]
    delegate = target.delegate_of(source.get("pod", "higher"))
    assert delegate not in {found["involvedObject"]["name"] for found in rejected}
    source.remove("higher")
    for kind in ("deployment", "pdb"):
        target.ask("delete", kind, "lower")
