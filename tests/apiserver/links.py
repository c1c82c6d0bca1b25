"""Links to targets whose API servers are in memory: as those of a Connection, but for the probes.

A link has the informers of a real one, which run while it is `connected`. Tests say themselves
whether it is healthy, and which cluster it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests import background
from tests.apiserver.server import APIServer
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.link import Link
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.target_options import NO_OPTIONS, TargetOptions
from vnode.targets import link_building
from vnode.targets.model import SecretReference, TargetSpec


def link_to(
    server: APIServer,
    target: TargetKey,
    identity: Identity,
    clock: Clock,
    *,
    cluster_uid: str = "",
    options: TargetOptions = NO_OPTIONS,
) -> Link:
    """Make a healthy link of the source with that identity to a target."""
    client = server.client(identity.name, name=str(target))
    link = link_by(client, target, identity, clock, options=options)
    link.recognized_uid = cluster_uid
    return link


def link_by(
    client: Client,
    target: TargetKey,
    identity: Identity,
    clock: Clock,
    *,
    options: TargetOptions = NO_OPTIONS,
) -> Link:
    """Make a healthy link with that client, whatever API server it calls."""
    secret = SecretReference(target.namespace, target.name, "config", "")
    link = link_building.make(client, TargetSpec(target, secret, "", options), identity, clock)
    set_healthy(link, True, clock)
    return link


def set_healthy(link: Link, healthy: bool, clock: Clock) -> None:
    """Tell a link what its prober would have found."""
    message = "" if healthy else "it does not answer"
    link.set_health(LinkHealth(healthy, "Probed", message, clock.now()))


@asynccontextmanager
async def connected(*links: Link) -> AsyncIterator[None]:
    """Run the informers of links; inside, they have listed."""
    async with following(
        *(i for link in links for i in (link.chaperons, link.summaries, *link.quotas))
    ):
        yield


@asynccontextmanager
async def following(*informers: Informer) -> AsyncIterator[None]:
    """Run informers; inside, they have listed."""
    async with background.running(*(informer.run() for informer in informers)):
        for informer in informers:
            await informer.synced.wait()

        yield
