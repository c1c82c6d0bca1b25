"""Outages of a target that end with the test that makes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests import kit
from tests.kit import Fleet
from vnode.api import kinds
from vnode.kube.client import Client


@asynccontextmanager
async def without_api_server(fleet: Fleet, source: Client, target: str) -> AsyncIterator[None]:
    """Kill a target's API server for the block, and wait until pods run there again."""
    fleet.run("stop", target, "kube-apiserver", "--kill")
    try:
        yield
    finally:
        fleet.run("start", target, "kube-apiserver")

    name = f"after-the-outage-of-{target}"
    pod = kit.pod_in(target, name)
    await source.create(kinds.PODS, pod, "default")
    await kit.until_running(source, name)
    await source.delete(kinds.PODS, name, "default", grace=0)
