"""Reaches the clusters behind Targets with the credentials of their Secrets, as the agent does.

A target gets a few seconds to answer, and the others do not wait for it. Commands in a Secret's
kubeconfig (exec plugins) are not run on the user's machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from vnode.api import keys, kinds, objects, shapes
from vnode.api.errors import ConfigError, NotFound, VnodeError
from vnode.api.objects import Object, Objects
from vnode.kube import endpoint
from vnode.kube.client import Client
from vnode.targets import model, secrets

TIMEOUT: Final = 6.0  # seconds for one target

Connect = Callable[[Client, Object], AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def connected(local: Client, target: Object) -> AsyncIterator[Client]:
    """Yield a client for the cluster behind a Target, with the credentials that the agent has.

    Raises ConfigError for a Target or Secret that cannot be used, ApiError for a Secret that may
    not be read.
    """
    spec = model.parse(target)
    if spec.is_self:
        yield local
        return

    if spec.secret is None:
        raise ConfigError(
            "the target is reached by its ClusterProfile, with credentials that the agent alone "
            "gets from its plugins"
        )

    try:
        secret = await local.get(kinds.SECRETS, spec.secret.name, spec.secret.namespace)
    except NotFound:
        secret = None

    where = endpoint.from_kubeconfig(secrets.kubeconfig(secret, spec.secret))
    async with Client(where, name=objects.name(target)) as client:
        yield client


async def summaries(local: Client, targets: Objects) -> list[tuple[Object, Object | None, str]]:
    """Return each Target with its ClusterSummary, or with None and why that was not to be had."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_summary(local, target), name=f"ask {objects.key(target)}")
            for target in targets
        ]

    return [(target, *task.result()) for target, task in zip(targets, tasks, strict=True)]


async def _summary(local: Client, target: Object) -> tuple[Object | None, str]:
    try:
        async with asyncio.timeout(TIMEOUT), connected(local, target) as remote:
            summary = await remote.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
            return shapes.trim_summary(summary), ""
    except TimeoutError:
        return None, f"no answer within {TIMEOUT:.0f} s"
    except NotFound:
        return None, "it has no ClusterSummary: no agent has run there"
    except VnodeError as error:
        return None, str(error)
