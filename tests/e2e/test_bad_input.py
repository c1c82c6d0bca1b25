"""What users get wrong: each is said where they look, with its cure, and touches nothing else.

Annotations of pods are in test_pods.py: the webhook rejects them.
"""

from __future__ import annotations

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, others_are_unaffected
from tests.e2e.refused_targets import assert_says, holder, kubeconfig_of
from tests.kit import Fleet
from vnode.api import kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["home", "others_are_unaffected"]

NOWHERE = "'https://192.0.2.1'"

pytestmark = pytest.mark.usefixtures("others_are_unaffected")


async def test_an_unparsable_kubeconfig(source: Client, home: str) -> None:
    await own.put_secret(source, home, own.GARBAGE)
    await own.put_target(source, home, own.named())
    await assert_says(source, home, "Invalid", "neither YAML nor JSON")


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        (f"server: {NOWHERE}, tls-server-name: 5", "tls-server-name is not the name of a host"),
        (f"server: {NOWHERE}, tls-server-name: .api", "tls-server-name is not the name of a host"),
        ("server: 'https://a..b:6443'", "host that cannot be one: write"),
        (f"server: 'https://{'x' * 64}:6443'", "1 to 63 letters"),
    ],
    ids=["number", "dot", "two-dots", "long-label"],
)
async def test_a_typing_error_in_a_kubeconfig_ends_nobody(
    source: Client, home: str, wrong: str, cure: str
) -> None:
    leader = await holder(source)
    await own.put_secret(source, home, kubeconfig_of(wrong))
    await own.put_target(source, home, own.named())
    await assert_says(source, home, "Invalid", cure)
    assert await holder(source) == leader


async def test_a_kubeconfig_that_refers_to_files_of_the_agent(source: Client, home: str) -> None:
    kubeconfig = (
        b"{current-context: it, contexts: [{name: it, context: {cluster: it, user: it}}],"
        b"clusters: [{name: it, cluster: {server: 'https://192.0.2.1'}}],"
        b"users: [{name: it, user: {tokenFile: /etc/passwd}}]}"
    )
    await own.put_secret(source, home, kubeconfig)
    await own.put_target(source, home, own.named())
    await assert_says(source, home, "Invalid", "tokenFile", "kubectl config view --flatten")


async def test_a_missing_secret_until_it_is_there(source: Client, home: str, fleet: Fleet) -> None:
    await own.put_target(source, home, {"kubeconfigSecret": {"name": "kubeconfig"}})
    await assert_says(source, home, "Invalid", "no Secret 'kubeconfig'", home, "vnode connect")
    await own.put_secret(source, home, own.admin(fleet, "c2"))
    await assert_says(source, home, "NamespaceNotFound", home, "create it there")


async def test_a_pod_says_of_a_target_of_its_namespace_why_it_cannot_be_used(
    source: Client, home: str
) -> None:
    await own.put_target(source, home, own.named())
    why = f"see kubectl describe target bad -n {home}"
    node = names.virtual_node(home, "bad")
    await kit.until_one(
        source, kinds.NODES, node, "", lambda found: why in own.ready(found).get("message", "")
    )
    await source.create(kinds.PODS, kit.pod("waits"), home)
    await kit.until_one(
        source,
        kinds.PODS,
        "waits",
        home,
        lambda pod: (
            f"bad: no connection can be made: {why}"
            in (objects.condition(pod, "PodScheduled") or {}).get("message", "")
        ),
    )
    await source.delete(kinds.PODS, "waits", home)
    await kit.until_gone(source, kinds.PODS, home)


async def test_a_secret_without_the_key(source: Client, home: str) -> None:
    await own.put_secret(source, home, b"", key="value")
    await own.put_target(source, home, own.named())
    await assert_says(
        source, home, "Invalid", "no key 'config' but value", "spec.kubeconfigSecret.key"
    )


@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        (own.named(self=True), "remove one of them"),
        ({}, "set kubeconfigSecret.name"),
        (own.named(excludedLabelsRegexp="("), "spec.excludedLabelsRegexp"),
        ({"self": True, "excludedLabelsRegexp": "^(?!a)"}, "nor back references"),
        (own.named("Not A Name"), "spec.kubeconfigSecret.name"),
    ],
    ids=["both", "neither", "bad-regexp", "look-around", "bad-name"],
)
async def test_a_spec_that_cannot_be(source: Client, home: str, spec: Object, cure: str) -> None:
    await own.put_target(source, home, spec)
    await assert_says(source, home, "Invalid", cure)


async def test_a_name_that_fits_no_label(source: Client, home: str) -> None:
    """It was Ready, and never had a Node."""
    name = "x" * 64
    target = {"metadata": {"name": name}, "spec": {"self": True}}
    await source.create(kinds.TARGETS, target, home)
    target = await kit.until_one(source, kinds.TARGETS, name, home, own.is_because("Invalid"))
    assert "create one with a shorter name" in own.ready(target)["message"]
