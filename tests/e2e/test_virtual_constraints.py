"""Pods that a quota controller, or their user, has confined to virtual nodes run in targets."""

from __future__ import annotations

from typing import Any

from tests import kit
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

C2 = names.virtual_node("default", "c2")
FLAVOR = {keys.PROVIDER_LABEL: keys.PROVIDER, keys.TARGET_NAME: "c2"}
TOLERATION = {
    "key": keys.PROVIDER_LABEL,
    "operator": "Equal",
    "value": keys.PROVIDER,
    "effect": "NoSchedule",
}
QUEUE = "kueue.x-k8s.io/queue-name"


def suspended_job(name: str, template: Object) -> Object:
    """Return a Job as its user submits it to a queue."""
    metadata = {"annotations": objects.annotations(template), "labels": {QUEUE: "team"}}
    spec: dict[str, Any] = {"suspend": True, "completions": 2, "parallelism": 2}
    spec["template"] = {"metadata": metadata, "spec": template["spec"]}
    return {"metadata": {"name": name, "labels": {QUEUE: "team"}}, "spec": spec}


async def admit(source: Client, name: str) -> None:
    """Do what Kueue does to a Job that a flavor has room for."""
    added = {"nodeSelector": FLAVOR, "tolerations": [TOLERATION]}
    body = {"spec": {"suspend": False, "template": {"spec": added}}}
    await source.patch(kinds.JOBS, name, body, "default")


async def test_a_job_that_a_queue_confines_to_virtual_nodes_runs_where_the_flavor_says(
    source: Client, c2: Client
) -> None:
    template = kit.pod("queued", restartPolicy="Never")
    await source.create(kinds.JOBS, suspended_job("queued", template), "default")
    await admit(source, "queued")
    pods = await kit.until(
        source,
        kinds.PODS,
        lambda all_: len(all_) == 2 and all(kit.phase(p) == "Succeeded" for p in all_.values()),
        namespace="default",
        label_selector="job-name=queued",
    )
    assert {objects.spec(pod)["nodeName"] for pod in pods.values()} == {C2}
    for pod in pods.values():
        name = names.chaperon(objects.name(pod), objects.uid(pod))
        delegate = await c2.get(kinds.PODS, name, "default")
        assert "nodeSelector" not in objects.spec(delegate)
        assert not [
            t for t in objects.spec(delegate)["tolerations"] if t["key"] == TOLERATION["key"]
        ]
        assert not [key for key in objects.labels(delegate) if key.endswith("queue-name")]


async def test_a_pod_that_the_default_scheduler_bound_to_a_virtual_node_runs(
    source: Client, c2: Client
) -> None:
    named = [{"key": keys.TARGET_NAME, "operator": "In", "values": ["c2", "elsewhere"]}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": named}]}
    constraints = {
        "nodeSelector": {keys.PROVIDER_LABEL: keys.PROVIDER},
        "tolerations": [TOLERATION],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": keys.TARGET_NAME,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "unelected"}},
            }
        ],
    }
    await source.create(kinds.PODS, kit.pod("unelected", annotations={}, **constraints), "default")
    pod = await kit.until_running(source, "unelected")
    assert objects.spec(pod)["schedulerName"] == "default-scheduler"
    assert objects.spec(pod)["nodeName"] == C2
