"""What containers do on a real node is seen on the proxy: logs, ends, restarts, volumes."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests import kit
from tests.kit import deployment
from tests.realnode.cluster import NodeCluster, pod
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.runtime.leader import AGENT_LEASE


def test_logs_are_what_the_container_wrote(source: NodeCluster):
    log = source.finish("speaks", "seq 1 100")

    assert log.splitlines() == [str(n) for n in range(1, 101)]
    assert source.ask("logs", "speaks", "--tail=2").splitlines() == ["99", "100"]
    source.remove("speaks")


async def test_followed_logs_come_line_by_line_and_end_with_the_container(source: NodeCluster):
    source.start("slow", "echo one; sleep 1000")
    async with source.session("logs", "-f", "slow") as process:
        assert process.stdout
        async with asyncio.timeout(kit.PATIENCE):
            assert await process.stdout.readline() == b"one\n"
            execute = ("exec", "slow", "--", "sh", "-c", "echo two > /proc/1/fd/1")
            await asyncio.to_thread(source.ask, *execute)
            assert await process.stdout.readline() == b"two\n"
            await asyncio.to_thread(source.remove, "slow")
            assert await process.wait() == 0


async def test_followed_logs_go_on_while_the_agent_ends_and_another_may_lead(
    source: NodeCluster, target: NodeCluster
):
    source.start("followed", "echo one; sleep 1000")
    execute = ("exec", target.delegate_of(source.get("pod", "followed")), "--", "sh", "-c")
    try:
        async with (
            source.session("logs", "-f", "followed") as process,
            asyncio.timeout(kit.PATIENCE),
        ):
            assert process.stdout
            assert await process.stdout.readline() == b"one\n"
            stop = ("stop", source.name, "agent")
            stopping = asyncio.create_task(asyncio.to_thread(source.fleet.run, *stop), name="stop")
            await _until_nobody_leads(source)
            await asyncio.to_thread(target.ask, *execute, "echo two > /proc/1/fd/1")
            assert await process.stdout.readline() == b"two\n"

        await stopping
    finally:
        source.fleet.run("start", source.name, "agent")

    source.remove("followed")


async def _until_nobody_leads(cluster: NodeCluster) -> None:
    async with cluster.fleet.client(cluster.name) as client:
        await kit.until_one(
            *(client, kinds.LEASES, AGENT_LEASE, "vnode"),
            lambda lease: not objects.spec(lease).get("holderIdentity"),
        )


def test_logs_of_the_previous_container(source: NodeCluster):
    script = "[ -e /state/again ] && exec sleep 1000; touch /state/again; echo first; exit 1"
    made = pod(
        "again",
        script,
        container={"volumeMounts": [{"name": "state", "mountPath": "/state"}]},
        volumes=[{"name": "state", "emptyDir": {}}],
    )
    source.apply(made)
    source.until("again", ".status.containerStatuses[0].restartCount", "1")

    assert source.ask("logs", "again", "--previous") == "first\n"
    source.remove("again")


def test_a_job_completes(source: NodeCluster):
    template = pod("", "echo done", restartPolicy="Never")
    spec = {
        "completions": 2,
        "parallelism": 2,
        "template": {
            "metadata": {"annotations": template["metadata"]["annotations"]},
            "spec": template["spec"],
        },
    }
    source.apply(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "twice"}, "spec": spec}
    )
    source.ask("wait", "--for=condition=Complete", "job/twice", kit.TIMEOUT)

    assert source.ask("logs", "job/twice") == "done\n"
    source.ask("delete", "job", "twice", "--wait")


def test_an_indexed_job_knows_its_index_its_labels_and_itself(source: NodeCluster):
    shown = {
        "TIER": "metadata.labels['example.com/tier']",
        "POD_NAME": "metadata.name",
        "POD_UID": "metadata.uid",
    }
    fields = {name: {"fieldRef": {"fieldPath": path}} for name, path in shown.items()}
    container = {
        "env": [{"name": name, "valueFrom": ref} for name, ref in fields.items()],
        "volumeMounts": [{"name": "info", "mountPath": "/info"}],
    }
    script = "echo $JOB_COMPLETION_INDEX $TIER $POD_NAME $POD_UID $(cat /info/tier /info/name)"
    files = [
        {"path": "tier", **fields["TIER"]},
        {"path": "name", **fields["POD_NAME"]},
    ]
    volume = {"name": "info", "downwardAPI": {"items": files}}
    made = pod("", script, container=container, restartPolicy="Never", volumes=[volume])
    template = {
        "metadata": {
            "annotations": made["metadata"]["annotations"],
            "labels": {"example.com/tier": "front"},
        },
        "spec": made["spec"],
    }
    spec = {
        "completionMode": "Indexed",
        "completions": 2,
        "parallelism": 2,
        "template": template,
    }
    source.apply(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "indexed"}, "spec": spec}
    )
    source.ask("wait", "--for=condition=Complete", "job/indexed", kit.TIMEOUT)

    pods = source.get("pods", "-l", "job-name=indexed")["items"]
    logs = {objects.name(p): source.ask("logs", objects.name(p)).split() for p in pods}
    assert sorted(words[0] for words in logs.values()) == ["0", "1"]
    for one in pods:
        name = objects.name(one)
        # The files have no end of line: what two of them say is one word.
        assert logs[name][1:] == ["front", name, objects.uid(one), f"front{name}"]
        assert name.startswith(f"indexed-{logs[name][0]}-")
    source.ask("delete", "job", "indexed", "--wait")


@pytest.mark.parametrize("code", [0, 5])
def test_the_exit_code_of_a_container_is_on_the_proxy(source: NodeCluster, code: int):
    name = f"exits-{code}"
    source.apply(pod(name, f"exit {code}", restartPolicy="Never"))
    source.until(name, ".status.phase", "Failed" if code else "Succeeded")

    (status,) = source.get("pod", name)["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == code
    source.remove(name)


def test_init_containers_run_first_and_have_logs(source: NodeCluster):
    shared = [{"name": "shared", "mountPath": "/shared"}]
    init = {
        "name": "first",
        "image": "busybox",
        "command": ["sh", "-c", "echo preparing; echo prepared > /shared/file"],
        "volumeMounts": shared,
    }
    log = source.finish(
        "prepared",
        "cat /shared/file",
        container={"volumeMounts": shared},
        initContainers=[init],
        volumes=[{"name": "shared", "emptyDir": {}}],
    )

    assert log == "prepared\n"
    assert source.ask("logs", "prepared", "-c", "first") == "preparing\n"
    source.remove("prepared")


def test_a_configmap_of_the_target_is_mounted(source: NodeCluster, target: NodeCluster):
    target.ask("create", "configmap", "words", "--from-literal=word=hello")
    log = source.finish(
        "reads",
        "cat /words/word",
        container={"volumeMounts": [{"name": "words", "mountPath": "/words"}]},
        volumes=[{"name": "words", "configMap": {"name": "words"}}],
    )

    assert log == "hello"
    source.remove("reads")
    target.ask("delete", "configmap", "words")


def test_a_liveness_probe_restarts_the_container_and_the_proxy_counts(source: NodeCluster):
    probe = {
        "exec": {"command": ["test", "-e", "/tmp/alive"]},
        "periodSeconds": 1,
        "failureThreshold": 1,
        "initialDelaySeconds": 1,
    }
    source.start("lively", "touch /tmp/alive; sleep 1000", container={"livenessProbe": probe})
    assert source.restarts("lively") == 0

    source.ask("exec", "lively", "--", "rm", "/tmp/alive")

    source.until("lively", ".status.containerStatuses[0].restartCount", "1")
    source.remove("lively")


@pytest.mark.parametrize("where", ["proxy", "delegate"])
def test_an_evicted_pod_ends_on_both_sides_and_is_replaced(
    source: NodeCluster, target: NodeCluster, where: str
):
    name = f"evicted-{where}"
    source.apply(deployment(name, 1, pod(name, "trap 'exit 0' TERM; sleep 1000 & wait")))
    source.ask("wait", "--for=condition=Available", f"deployment/{name}", kit.TIMEOUT)
    proxy = _only(source, name)
    delegate = target.delegate_of(proxy)

    if where == "proxy":
        _evict(source, objects.name(proxy))
    else:
        _evict(target, delegate)

    for cluster, gone in ((source, objects.name(proxy)), (target, delegate)):
        cluster.ask("wait", "--for=delete", f"pod/{gone}", kit.TIMEOUT)
    source.ask("wait", "--for=condition=Available", f"deployment/{name}", kit.TIMEOUT)
    assert target.delegate_of(_only(source, name)) != delegate
    source.ask("delete", "deployment", name, "--wait")


def test_a_pod_is_ready_when_the_source_opens_its_readiness_gate(
    source: NodeCluster, target: NodeCluster
):
    """As the controller of a load balancer does; the kubelet waits for it, and so the proxy."""
    gate = "example.com/lb-ready"
    source.apply(pod("gated", "sleep 1000", readinessGates=[{"conditionType": gate}]))
    source.ask("wait", "--for=condition=ContainersReady", "pod/gated", kit.TIMEOUT)
    assert _conditions(source, "gated")["Ready"]["reason"] == "ReadinessGatesNotReady"

    for status in ("True", "False"):
        patch = json.dumps({"status": {"conditions": [{"type": gate, "status": status}]}})
        source.ask("patch", "pod", "gated", "--subresource=status", "--patch", patch)
        delegate = target.delegate_of(source.get("pod", "gated"))
        for cluster, name in ((target, delegate), (source, "gated")):
            cluster.ask("wait", f"--for=condition=Ready={status}", f"pod/{name}", kit.TIMEOUT)

        assert _conditions(source, "gated")[gate]["status"] == status

    seen = source.get("pod", "gated")
    assert seen["status"]["observedGeneration"] == seen["metadata"]["generation"]
    source.remove("gated")


def _conditions(cluster: NodeCluster, name: str) -> dict[str, Object]:
    entries = cluster.get("pod", name)["status"]["conditions"]
    return {entry["type"]: entry for entry in entries}


def _only(cluster: NodeCluster, app: str) -> Object:
    (found,) = cluster.get("pods", "-l", f"app={app}")["items"]
    return found


def _evict(cluster: NodeCluster, name: str) -> None:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "default"},
    }
    path = f"/api/v1/namespaces/default/pods/{name}/eviction"
    cluster.ask("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction).encode())


def test_a_node_that_loses_power_starts_its_pods_again_and_the_proxy_counts(
    source: NodeCluster, target: NodeCluster
):
    source.start("survives", "sleep 1000")

    target.fleet.run("stop", target.name, "real-node", "--kill")
    target.fleet.run("start", target.name, "real-node")

    source.until("survives", ".status.containerStatuses[0].restartCount", "1")
    source.ask("wait", "--for=condition=Ready", "pod/survives", kit.TIMEOUT)
    assert source.kubectl("exec", "survives", "--", "sh", "-c", "exit 4").code == 4
    source.remove("survives")
