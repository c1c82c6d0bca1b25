"""Completes names of objects in a shell: asks the cluster that the command line names so far.

A shell waits for this at each press of Tab. So a cluster gets a moment to answer, and whatever goes
wrong there is nothing to offer: an error in the middle of a line that is being typed helps nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import click
from click.shell_completion import CompletionItem

from vnode.api import keys, kinds, objects
from vnode.api.errors import VnodeError
from vnode.cli.access import Access
from vnode.insight import collecting
from vnode.kube.client import Client

_SECONDS: Final = 2.0

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_Read = Callable[[Client, str], Awaitable[list[str]]]


def _completing(read: _Read) -> Complete:
    def complete(
        context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        given = context.params
        access = Access(given.get("kubeconfig"), given.get("context"))

        async def names() -> list[str]:
            async with asyncio.timeout(_SECONDS), access.client() as client:
                return await read(client, given.get("namespace") or client.endpoint.namespace)

        logging.disable()
        try:
            found = asyncio.run(names())
        except (VnodeError, TimeoutError, OSError):
            return []
        finally:
            logging.disable(logging.NOTSET)

        return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]

    return complete


async def _targets(client: Client, namespace: str) -> list[str]:
    return list({objects.name(each) for each in await collecting.covering(client, namespace)})


async def _pods(client: Client, namespace: str) -> list[str]:
    pods = await client.list(kinds.PODS, namespace)
    return [objects.name(pod) for pod in pods if keys.ELECT in objects.annotations(pod)]


targets: Final = _completing(_targets)
"""Completes the name of a Target, or of a ClusterTarget."""
pods: Final = _completing(_pods)
"""Completes the name of an elected pod."""
