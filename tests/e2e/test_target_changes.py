"""A Target, its Secret or its token changes, or goes: at once, and for that target alone."""

from __future__ import annotations

import asyncio
import subprocess
import uuid
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, others_are_unaffected, shared
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.kube.client import Client

__all__ = ["home", "others_are_unaffected", "shared"]

pytestmark = pytest.mark.usefixtures("others_are_unaffected")

_AT_ONCE: Final = 8.0  # seconds on a busy machine; probes alone would see it after ten


@pytest.fixture
async def followed(source: Client, fleet: Fleet) -> AsyncIterator[Process]:
    """Yield the process of `kubectl logs -f` of a pod in the fleet's own c2."""
    name = f"follow-{uuid.uuid4().hex[:6]}"
    constraints = f"nodeSelector: {{{keys.TARGET_NAME}: c2}}"
    await own.run_pod(source, "default", name, **{keys.PROXY_CONSTRAINTS: constraints})
    command = [*fleet.kubectl_command("c1"), "logs", "-f", name]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline()
    yield process
    process.terminate()
    await process.communicate()
    await source.delete(kinds.PODS, name, "default")
    await kit.until_gone(source, kinds.PODS, "default", label_selector=f"app={name}")


async def test_a_secret_takes_effect_at_once_and_for_its_target_alone(
    source: Client, shared: str, fleet: Fleet, followed: Process
) -> None:
    await own.put_secret(source, shared, own.admin(fleet, "c2"))
    await own.put_target(source, shared, own.named())
    await own.assert_connects(source, shared)
    pod = await own.run_pod(source, shared, "through-it-all")
    for kubeconfig, reason in (
        (own.with_token(fleet, "c2", "nonsense"), "Unauthorized"),
        (own.admin(fleet, "c2"), "Connected"),
        (own.GARBAGE, "Invalid"),
        (own.admin(fleet, "c2"), "Connected"),
    ):
        await own.put_secret(source, shared, kubeconfig)
        await kit.until_one(
            source, kinds.TARGETS, "bad", shared, own.is_because(reason), seconds=_AT_ONCE
        )

    await source.delete(kinds.SECRETS, "kubeconfig", shared)
    await kit.until_one(
        source, kinds.TARGETS, "bad", shared, own.is_because("Invalid"), seconds=_AT_ONCE
    )
    await kit.until_one(
        source,
        kinds.NODES,
        names.virtual_node(shared, "bad"),
        "",
        lambda node: (objects.condition(node, "Ready") or {}).get("status") == "False",
    )
    await own.put_secret(source, shared, own.admin(fleet, "c2"))
    await own.assert_connects(source, shared, seconds=_AT_ONCE)
    assert followed.returncode is None
    now = await source.get(kinds.PODS, "through-it-all", shared)
    assert (objects.uid(now), kit.phase(now)) == (objects.uid(pod), "Running")
    await source.delete(kinds.PODS, "through-it-all", shared)
    await kit.until_gone(source, kinds.PODS, shared)


async def test_a_changed_target_takes_effect_at_once(
    source: Client, c2: Client, shared: str, fleet: Fleet, followed: Process
) -> None:
    node = objects.name((await c2.list(kinds.NODES))[0])
    await c2.patch(kinds.NODES, node, {"metadata": {"labels": {"disk": "fast"}}})
    await own.put_secret(source, shared, own.admin(fleet, "c2"))
    await own.put_target(source, shared, own.named())
    name = names.virtual_node(shared, "bad")
    await kit.until_one(source, kinds.NODES, name, "", lambda n: "disk" in objects.labels(n))
    await own.put_target(source, shared, own.named(excludedLabelsRegexp="^disk="))
    await kit.until_one(
        source, kinds.NODES, name, "", lambda n: "disk" not in objects.labels(n), seconds=_AT_ONCE
    )
    assert followed.returncode is None
    await c2.patch(kinds.NODES, node, {"metadata": {"labels": {"disk": None}}})


async def test_a_deleted_target_leaves_nothing_and_can_come_back(
    source: Client, c2: Client, c3: Client, shared: str, fleet: Fleet
) -> None:
    for target, words in (("c3", ()), ("c2", ("--name", "other"))):
        done = own.connect(fleet, shared, target, *words)
        assert not done.code, done.err

    on = {
        name: {keys.PROXY_CONSTRAINTS: f"nodeSelector: {{{keys.TARGET_NAME}: {name}}}"}
        for name in ("bad", "other")
    }
    kept = await own.run_pod(source, shared, "kept", **on["other"])
    await own.run_pod(source, shared, "reserved", **on["bad"])
    await own.run_pod(source, shared, "unreserved", **on["bad"], **{keys.NO_RESERVATION: ""})
    waiting = kit.pod("waiting", annotations={keys.ELECT: "", keys.NO_RESERVATION: "", **on["bad"]})
    waiting["spec"]["nodeSelector"] = {"no": "such-node"}
    await source.create(kinds.PODS, waiting, shared)
    await kit.until(c3, kinds.PODS, lambda all_: len(all_) == 3, namespace=shared)

    await source.delete(kinds.TARGETS, "bad", shared)
    node = names.virtual_node(shared, "bad")
    await kit.until_gone(source, kinds.NODES, field_selector=f"metadata.name={node}")
    await kit.until_gone(c3, kinds.POD_CHAPERONS, shared)
    await kit.until_gone(c3, kinds.PODS, shared)
    for name in ("reserved", "unreserved", "waiting"):
        only = f"metadata.name={name}"
        await kit.until_gone(source, kinds.PODS, shared, field_selector=only)

    await kit.until_gone(c3, kinds.POD_CHAPERONS, shared)
    now = await source.get(kinds.PODS, "kept", shared)
    assert (objects.uid(now), kit.phase(now)) == (objects.uid(kept), "Running")
    assert not objects.is_terminating(now)

    done = own.connect(fleet, shared, "c3")
    assert not done.code, done.err
    back = await own.run_pod(source, shared, "back", **on["bad"])
    assert objects.spec(back)["nodeName"] == node
    for name in ("kept", "back"):
        await source.delete(kinds.PODS, name, shared)

    await kit.until_gone(source, kinds.PODS, shared)
