"""A release of the chart in containers: its parts find each other, are replaced, and go.

The tests run in their order; the last one ends the release in the source.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests import kit
from tests.fleets import vnode
from tests.image import operating
from tests.image.operating import DEPLOYMENTS, NAMESPACE, VIRTUAL_NODES, release
from tests.kit import Fleet
from tests.realnode.cluster import SOURCE, TARGET, NodeCluster, pod
from vnode.api.objects import Object

_SPEAKS = "echo hello; trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"
_WITH_FINALIZERS = "multicluster.admiralty.io/has-finalizer=true"
_COPIES = f"multicluster.admiralty.io/parent-cluster-name={SOURCE}"


def test_an_elected_pod_runs_in_the_target_and_can_be_talked_to(
    source: NodeCluster, target: NodeCluster
):
    source.start("first", _SPEAKS)

    delegate = target.delegate_of(source.get("pod", "first"))
    assert source.ask("logs", "first") == "hello\n"
    assert source.ask("exec", "first", "--", "hostname").strip() == delegate


@pytest.mark.parametrize("name", [SOURCE, TARGET])
def test_helm_test_passes_and_shows_what_it_saw(fleet: Fleet, name: str):
    output = release(fleet, name, "test", "vnode", "--logs")

    assert "Succeeded" in output
    assert output.count(" 200\n") == 2


def test_the_doctor_finds_nothing(fleet: Fleet):
    files = ("--source", fleet.kubeconfig(SOURCE), "--target", fleet.kubeconfig(TARGET))

    done = vnode("doctor", *files)

    assert done.code == 0, done.out
    assert "0 warnings, 0 failures, 0 could not be checked" in done.out


def test_another_agent_leads_when_the_leader_goes(source: NodeCluster):
    gone = operating.leader(source, "vnode-agent")
    assert gone in operating.pods(source, "agent")

    source.ask("delete", "pod", "-n", NAMESPACE, gone, kit.TIMEOUT)

    source.start("second", _SPEAKS)
    assert operating.leader(source, "vnode-agent") in operating.pods(source, "agent")
    assert operating.leader(source, "vnode-agent") != gone
    assert source.ask("logs", "second") == "hello\n"


def test_pods_are_delegated_while_an_upgrade_replaces_everything(fleet: Fleet, source: NodeCluster):
    before = {name: set(operating.pods(source, part)) for name, part in _parts()}

    with user(source) as served:
        operating.install(fleet, "controllerManager.logLevel=debug", "scheduler.logLevel=3")

    assert len(served) > 1
    for name, part in _parts():
        source.ask("rollout", "status", "-n", NAMESPACE, f"deploy/{name}", kit.TIMEOUT)
        assert before[name].isdisjoint(operating.pods(source, part))
    assert source.ask("exec", "first", "--", "echo", "still there").strip() == "still there"


def _parts() -> list[tuple[str, str]]:
    return [(name, name.removeprefix("vnode-")) for name in DEPLOYMENTS]


@contextmanager
def user(cluster: NodeCluster) -> Iterator[list[str]]:
    """Run one pod after the other, as a user does; inside, a list of their names grows.

    Raise the failure of a pod when the block ends: it is a failure of the test.
    """
    served: list[str] = []
    enough = threading.Event()

    def run() -> None:
        while not enough.is_set():
            name = f"user-{len(served)}"
            cluster.start(name, _SPEAKS)
            assert cluster.get("pod", name)["spec"]["nodeName"].startswith("admiralty-")
            served.append(name)
            cluster.remove(name)

    with ThreadPoolExecutor(max_workers=1) as aside:
        running = aside.submit(run)
        try:
            yield served
        finally:
            enough.set()
        running.result()


def uses_words(name: str) -> Object:
    """Return a pod that is slow to end, with a ConfigMap that follows it."""
    made = pod(name, "trap 'sleep 3; exit 0' TERM; while :; do sleep 1000 & wait $!; done")
    made["spec"]["terminationGracePeriodSeconds"] = 20
    made["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "words"}}]
    return made


def test_the_steps_of_the_documentation_leave_nothing_behind(
    fleet: Fleet, source: NodeCluster, target: NodeCluster
):
    """docs/install.md: with containers that take their time to end."""
    source.ask("create", "configmap", "words", "--from-literal=word=hello")
    source.apply(uses_words("slow"))
    source.ask("wait", "--for=condition=Ready", "pod/slow", kit.TIMEOUT)

    source.ask("delete", "targets,clustertargets", "--all", "--all-namespaces")
    source.ask("wait", "--for=delete", "pods", "-A", "-l", _WITH_FINALIZERS, kit.TIMEOUT)
    kinds = "configmaps,secrets,services,ingresses"
    target.ask("wait", "--for=delete", kinds, "-A", "-l", _COPIES, kit.TIMEOUT)
    release(fleet, SOURCE, "uninstall", "vnode", "--wait")

    assert source.get("pods")["items"] == []
    assert source.get("nodes", *VIRTUAL_NODES)["items"] == []
    assert target.get("podchaperons", "-A")["items"] == []
    assert target.get("pods")["items"] == []
    assert target.kubectl("get", "configmap", "words").code != 0
    assert [operating.pods(source, part) for _name, part in _parts()] == [{}, {}]
