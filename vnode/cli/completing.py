"""Completes names of objects in a shell: asks the cluster that the command line names so far.

A shell waits for this at each press of Tab. So a cluster gets a moment to answer, and whatever goes
wrong there is nothing to offer: an error in the middle of a line that is being typed helps nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, VnodeError
from vnode.cli.access import Access
from vnode.insight import usable_targets
from vnode.kube.client import Client

_SECONDS: Final = 2.0

Given = Mapping[str, Any]
"""The arguments and options that the line has so far, by the names that commands have for them."""
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Read = Callable[[Client, str, Given], Awaitable[Iterable[str]]]


def from_cluster(read: Read) -> Complete:
    """Make what completes a parameter with the names that `read` returns for a namespace."""

    def complete(
        context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        given = context.params
        access = Access(
            given.get("kubeconfig") or given.get("source"),
            given.get("context") or given.get("source_context"),
        )

        async def names() -> Iterable[str]:
            async with asyncio.timeout(_SECONDS), access.client() as client:
                namespace = given.get("namespace") or client.endpoint.namespace
                return await read(client, namespace, given)

        logging.disable()
        try:
            found = asyncio.run(names())
        except (VnodeError, TimeoutError, OSError):
            return []
        finally:
            logging.disable(logging.NOTSET)

        return _offered(found, incomplete)

    return complete


def contexts(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a context of the kubeconfig whose option goes with this one."""
    side = str(parameter.name).removesuffix("context").removesuffix("_") or "kubeconfig"
    try:
        return _offered(Access(context.params.get(side)).contexts(), incomplete)
    except ConfigError:
        return []


def _offered(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(incomplete)]


async def _targets(client: Client, namespace: str, _given: Given) -> Iterable[str]:
    return map(objects.name, await usable_targets.covering(client, namespace))


async def _pods(client: Client, namespace: str, _given: Given) -> Iterable[str]:
    pods = await client.list(kinds.PODS, namespace)
    return [objects.name(pod) for pod in pods if keys.ELECT in objects.annotations(pod)]


async def _namespaces(client: Client, _namespace: str, _given: Given) -> Iterable[str]:
    return map(objects.name, await client.list(kinds.NAMESPACES))


targets: Final = from_cluster(_targets)
"""Completes the name of a Target, or of a ClusterTarget."""
pods: Final = from_cluster(_pods)
"""Completes the name of an elected pod."""
namespaces: Final = from_cluster(_namespaces)
"""Completes the name of a namespace; those who may not list them are offered none."""
