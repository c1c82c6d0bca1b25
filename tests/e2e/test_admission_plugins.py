"""Plugins of API servers that say which nodes the pods of a namespace may use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import pytest

from tests import kit
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import errors, keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

PLUGINS: Final = "PodNodeSelector,PodTolerationRestriction"
NODE: Final = names.virtual_node("default", "c2")
SELECTOR: Final = "scheduler.alpha.kubernetes.io/node-selector"
ALLOWED: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
# What API servers give any pod that has requests, and what the webhook gives a proxy.
USUAL: Final = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
)
OF_PROXIES: Final = ("node.kubernetes.io/network-unavailable", keys.PROVIDER_LABEL)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with started(
        tmp_path_factory,
        *("c1", "c2", "--nodes", "2", "--agents", "--connect", "c1:c2"),
        f"--apiserver-arg=--enable-admission-plugins={PLUGINS}",
    ) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
async def _clean(source: Client) -> AsyncIterator[None]:
    """Leave nothing that the next test of this fleet is held to."""
    yield
    for key in (SELECTOR, ALLOWED):
        await annotate(source, key, None)


async def annotate(source: Client, key: str, value: str | None) -> None:
    patch = {"metadata": {"annotations": {key: value}}}
    await source.patch(kinds.NAMESPACES, "default", patch)


async def until_judged(source: Client, body: Object, wanted: Callable[[Object], bool]) -> None:
    """Try until a pod would be created as wanted; {} stands for one that would be refused.

    Plugins learn of annotations with a delay, which nothing tells.
    """
    full = {**body, "apiVersion": "v1", "kind": "Pod"}
    while True:
        try:
            made: Object = await source.request(
                "POST", kinds.PODS.path("default"), query={"dryRun": "All"}, body=full
            )
        except errors.ServerError as error:
            if not error.message.endswith("conflict with its namespace whitelist"):
                raise

            made = {}

        if wanted(made):
            return

        await asyncio.sleep(0.1)


def is_refused(made: Object) -> bool:
    return not made


async def test_the_nodes_of_a_namespace_are_chosen_among_virtual_nodes_and_in_the_target(
    source: Client, c2: Client
) -> None:
    chosen = {"metadata": {"labels": {"disk": "ssd"}}}
    await annotate(source, SELECTOR, "disk=ssd")
    wanted = {"disk": "ssd", keys.PROVIDER_LABEL: keys.PROVIDER}
    await until_judged(
        source, kit.pod("web"), lambda made: objects.spec(made)["nodeSelector"] == wanted
    )
    await source.create(kinds.PODS, kit.pod("web"), "default")
    await kit.until_refused(
        source, "web", "0/1 targets: c2: didn't match Pod's node affinity/selector"
    )

    await source.patch(kinds.NODES, NODE, chosen)
    await kit.until_refused(source, "web", "2 node(s) didn't match Pod's node affinity/selector")

    await c2.patch(kinds.NODES, "c2-node-1", chosen)
    pod = await kit.until_running(source, "web")
    delegate = await c2.get(
        kinds.PODS, names.chaperon(objects.name(pod), objects.uid(pod)), "default"
    )
    assert objects.spec(delegate)["nodeSelector"] == {"disk": "ssd"}
    assert objects.node_name(delegate) == "c2-node-1"


async def test_a_namespace_that_restricts_tolerations_takes_proxies_whose_own_it_allows(
    source: Client,
) -> None:
    plain, elected = kit.pod("plain", annotations={}), kit.pod("lenient")
    await annotate(source, ALLOWED, whitelist("example.com/gold"))
    await until_judged(source, plain, is_refused)
    await annotate(source, ALLOWED, whitelist(*USUAL))
    await until_judged(source, plain, bool)
    await until_judged(source, elected, is_refused)
    await annotate(source, ALLOWED, whitelist(*USUAL, *OF_PROXIES))
    await until_judged(source, elected, bool)
    await source.create(kinds.PODS, elected, "default")
    await kit.until_running(source, "lenient")


def whitelist(*allowed: str) -> str:
    return json.dumps([{"key": key, "operator": "Exists"} for key in allowed])
