"""Finds out whether a connection can go on at another address of its target's API server.

Certificate authorities and addresses of a cluster change while pods run there. A connection that
ended for that would be missing until the next one has listed everything; so it goes on at the new
address, if the same cluster answers there and lets us do what we must. An operator who meant
another cluster, or made a mistake, learns so from a new connection, after a moment.
"""

from __future__ import annotations

import asyncio
from typing import Final

from vnode.api.clock import Clock
from vnode.api.errors import Unreachable, VnodeError
from vnode.kube.client import Client
from vnode.targets import probing
from vnode.targets.cluster_identity import Recognition

_LIMIT: Final = 10.0  # seconds until the former address counts as given up
_ATTEMPT: Final = 5.0  # seconds for one attempt
_PAUSE: Final = 1.0  # seconds to the next one


async def problem_at(
    client: Client,
    namespace: str,
    recognition: Recognition,
    clock: Clock,
    another: asyncio.Event,
) -> VnodeError | None:
    """Return why the cluster that was recognized is not to be used by that client; None if it is.

    Errors that may be gone in a moment are waited for, for some seconds, and until `another`
    address is known.
    """
    if not recognition.uid:
        return Unreachable("the target does not say which cluster it is")

    end = clock.monotonic() + _LIMIT
    while True:
        problem = await _attempt(client, namespace, recognition)
        lasts = problem is None or not probing.is_transient(problem)
        if lasts or another.is_set() or clock.monotonic() >= end:
            return problem

        await clock.sleep(_PAUSE)


async def _attempt(client: Client, namespace: str, recognition: Recognition) -> VnodeError | None:
    try:
        async with asyncio.timeout(_ATTEMPT):
            await probing.probe(client, namespace)
            await recognition.check(client)
    except TimeoutError:
        return Unreachable(f"no answer within {_ATTEMPT:.0f} s")
    except VnodeError as error:
        return error

    return None
