"""`vnode get`, `top`, `cordon` and `drain` on a fleet, as a user runs them."""

from __future__ import annotations

import asyncio
import json
import sys

import yaml

from tests import kit
from tests.fleets import Result, vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.kube.client import Client

NODES = ("admiralty-default-c2", "admiralty-default-c3")


def run(fleet: Fleet, *words: str) -> Result:
    return vnode(*words, "--kubeconfig", fleet.kubeconfig("c1"))


def test_targets_are_shown_with_their_nodes_and_the_end_of_their_credentials(fleet: Fleet) -> None:
    done = run(fleet, "get", "targets", "-o", "wide")
    assert done.code == 0, done.err
    heading, *rows = done.out.splitlines()
    assert heading.split()[:5] == ["NAMESPACE", "NAME", "READY", "REASON", "NODE"]
    for row, name, node in zip(rows, ("c2", "c3"), NODES, strict=True):
        assert row.split()[:5] == ["default", name, "True", "Connected", node]
        assert "the token ends on 20" in row
        assert "\x1b" not in row


def test_objects_come_as_json_yaml_and_names(fleet: Fleet) -> None:
    as_json = json.loads(run(fleet, "get", "nodes", "-o", "json").out)
    assert [item["kind"] for item in as_json["items"]] == ["Node", "Node"]
    assert yaml.safe_load(run(fleet, "get", "target", "c2", "-o", "yaml").out)["kind"] == "Target"
    names = run(fleet, "get", "targets", "-o", "name").out.split()
    assert names[0] == "target.multicluster.admiralty.io/c2"
    assert fleet.kubectl("c1", "get", names[0], "-o", "name").strip() == names[0]


def test_sources_are_shown_in_the_target(fleet: Fleet) -> None:
    done = vnode("get", "sources", "-A", "--kubeconfig", fleet.kubeconfig("c2"))
    assert "service account default/c1" in done.out


def test_what_is_not_there_is_an_error(fleet: Fleet) -> None:
    done = run(fleet, "get", "targets", "nowhere")
    assert (done.code, done.out) == (1, "")
    assert done.err == "Error: targets nowhere: not found\n"


async def test_a_watch_prints_a_pod_as_it_changes(fleet: Fleet, source: Client) -> None:
    words = [sys.executable, "-m", "vnode", "get", "pods", "--watch"]
    words += ["--kubeconfig", str(fleet.kubeconfig("c1"))]
    watching = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert watching.stdout is not None
    try:
        assert await watching.stdout.readline() == b"No pods found in namespace default.\n"
        await source.create(kinds.PODS, kit.pod("watched"), "default")
        while b"Running" not in (line := await watching.stdout.readline()):
            assert line

        assert line.split()[:2] == [b"watched", b"1/1"]
    finally:
        watching.terminate()
        await watching.communicate()


async def test_top_counts_what_the_pods_of_a_target_ask_for(fleet: Fleet, source: Client) -> None:
    await source.create(kinds.PODS, kit.pod("counted"), "default")
    pod = await kit.until_running(source, "counted")
    name = objects.spec(pod)["nodeName"].removeprefix("admiralty-default-")
    rows = {row.split()[0]: row.split() for row in run(fleet, "top", "targets").out.splitlines()}
    assert rows[f"default/{name}"][1:5] == ["Ready", "1", "1", "10m"]
    pods = run(fleet, "top", "pods").out
    assert f"default/{name}" in pods
    assert "16Mi" in pods


async def test_a_drained_target_gets_no_pods_and_its_pods_move_on(
    fleet: Fleet, source: Client
) -> None:
    await source.create(
        kinds.DEPLOYMENTS, kit.deployment("moving", 3, kit.pod("moving")), "default"
    )
    found = await kit.until(
        source, kinds.PODS, lambda pods: kit.running(pods, 3), namespace="default"
    )
    node = objects.spec(next(iter(found.values())))["nodeName"]
    [other] = set(NODES) - {node}
    try:
        done = run(fleet, "drain", node.removeprefix("admiralty-default-"), "--timeout", "60s")
        assert done.code == 0, done.err
        assert done.out == f"node/{node} cordoned\nnode/{node} drained\n"
        assert "evicting pod default/moving-" in done.err
        assert " evicted\n" in done.err
        await kit.until(
            source,
            kinds.PODS,
            lambda pods: (
                kit.running(pods, 3)
                and all(objects.spec(pod)["nodeName"] == other for pod in pods.values())
            ),
            namespace="default",
        )
    finally:
        assert run(fleet, "uncordon", node).out == f"node/{node} uncordoned\n"


async def test_a_drain_respects_disruption_budgets(fleet: Fleet, source: Client) -> None:
    await source.create(kinds.DEPLOYMENTS, kit.deployment("kept", 1, kit.pod("kept")), "default")
    found = await kit.until(
        source, kinds.PODS, lambda pods: kit.running(pods, 1), namespace="default"
    )
    node = objects.spec(next(iter(found.values())))["nodeName"]
    fleet.kubectl("c1", "create", "pdb", "kept", "--selector=app=kept", "--min-available=1")
    try:
        fleet.kubectl("c1", "wait", "pdb/kept", "--for=jsonpath={.status.currentHealthy}=1")
        done = run(fleet, "drain", node, "--timeout", "3s")
        assert done.code == 1
        assert "violate the pod's disruption budget" in done.err
        assert "still there: default/kept-" in done.err
        assert len(await source.list(kinds.PODS, "default")) == 1
    finally:
        fleet.kubectl("c1", "delete", "pdb", "kept")
        run(fleet, "uncordon", node)


async def test_a_drain_touches_no_pod_that_nobody_replaces(fleet: Fleet, source: Client) -> None:
    await source.create(kinds.PODS, kit.pod("alone"), "default")
    pod = await kit.until_running(source, "alone")
    node = objects.spec(pod)["nodeName"]
    try:
        done = run(fleet, "drain", node)
        assert done.code == 1
        assert "use --force to override: default/alone" in done.err
        forced = run(fleet, "drain", node, "--force", "--timeout", "60s")
        assert forced.code == 0, forced.err
        assert not await source.list(kinds.PODS, "default")
    finally:
        run(fleet, "uncordon", node)
