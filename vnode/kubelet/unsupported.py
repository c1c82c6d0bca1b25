"""Refuses what a virtual node cannot do, in the words of a kubelet where that is disabled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from vnode.kubelet.delegates import ServedNode, has_container
from vnode.kubelet.refusal import Refused

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")

DISABLED: Final[Mapping[str, tuple[int, str]]] = {
    "logs": (405, "logs endpoint is disabled. A virtual node is no machine: ask its target's"),
    "debug": (405, "Debug endpoints are disabled. The agent has no profiles in Go's formats"),
    "flagz": (404, "404 page not found: the agent's flags are in its configuration file"),
    "statusz": (404, "404 page not found: see healthz, and /readyz on the agent's health port"),
}
"""First part of the path -> status code and text."""


async def disabled(_node: ServedNode, request: web.Request) -> web.StreamResponse:
    """Raise Refused."""
    status, text = DISABLED[request.path.split("/", 2)[1]]
    raise Refused(status, text)


async def checkpoint(node: ServedNode, request: web.Request) -> web.StreamResponse:
    """Raise Refused: 404 for a pod or container that does not exist, else 500."""
    path = request.match_info
    pod = await node.pod(path["namespace"], path["pod"])
    container = path["container"]
    if not has_container(pod, container):
        raise Refused(404, f"container {container} does not exist")

    timeout = (request.query.getall("timeout", ["0"]))[-1]
    if not _INTEGER.fullmatch(timeout):
        raise Refused(404, "cannot parse value of timeout parameter")

    raise Refused(
        500,
        f"checkpointing of {path['namespace']}/{path['pod']}/{container} failed (it would be a "
        f"file on a node of {node.link.target}, which no API server gives out: do it there)",
    )
