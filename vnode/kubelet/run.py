"""Serves `run`: one command in a container, its output as the answer. `exec` has replaced it.

The command runs by exec over WebSocket in the target. As in a kubelet, every failure, also that of
the command, is a 500 with the reason.
"""

from __future__ import annotations

from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from vnode.api import documents
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube import websockets
from vnode.kubelet import queries
from vnode.kubelet.delegates import Delegate, ServedNode, audit_stream, has_container
from vnode.kubelet.refusal import Refused
from vnode.kubelet.streams.pace import Pace, StreamPaces, go_on

_PROTOCOL: Final = "v4.channel.k8s.io"
_STDOUT, _STDERR, _STATUS = 1, 2, 3
_LEAST: Final = 4096  # bytes of which it is as costly to take a short message
_LIMIT: Final = 16 * 1024 * 1024  # bytes of output, the limit of a container runtime for a kubelet


async def serve(paces: StreamPaces, node: ServedNode, request: web.Request) -> web.StreamResponse:
    """Run `?cmd=` (split at spaces, no shell) and answer with its output."""
    path = request.match_info
    pod = await node.pod(path["namespace"], path["pod"], path.get("uid", ""))
    container = path["container"]
    if not has_container(pod, container):
        raise Refused(500, f'container not found ("{container}")')

    command = queries.split_command(request.query.get("cmd", ""))
    delegate = node.delegate(pod)
    try:
        out, err, status = await _run(delegate, container, command, paces.of(path["namespace"]))
    except VnodeError as error:
        if isinstance(error, Refused):
            raise

        raise Refused(500, f"target {delegate.client.name}: {error}") from error

    if status.get("status") != "Success":
        raise Refused(500, failure(command, status, err.decode(errors="replace")))

    return web.Response(body=out + err, content_type="application/json")


async def _run(
    delegate: Delegate, container: str, command: list[str], pace: Pace
) -> tuple[bytes, bytes, Object]:
    """Return standard output, standard error, and the final status."""
    query = [("container", container), ("stdout", "true"), ("stderr", "true")]
    query += [("command", argument) for argument in command]
    parts: dict[int, bytearray] = {_STDOUT: bytearray(), _STDERR: bytearray(), _STATUS: bytearray()}
    async with websockets.connect(
        delegate.client, delegate.path("exec"), query, _PROTOCOL
    ) as socket:
        length = sum(len(each.encode(errors="replace")) for each in command)
        audit_stream(delegate, "exec", container, length)
        async for message in socket:
            if message.type is aiohttp.WSMsgType.BINARY and message.data:
                parts.get(message.data[0], bytearray()).extend(message.data[1:])
                if sum(map(len, parts.values())) > _LIMIT:
                    raise Refused(500, f"the command prints more than {_LIMIT} bytes")

                await go_on(pace(max(len(message.data), _LEAST)))

    try:
        status = documents.decode(bytes(parts[_STATUS]))
    except documents.NO_JSON:
        status = None

    if not isinstance(status, dict):
        raise Refused(500, f"target {delegate.client.name} broke off before the command ended")

    return bytes(parts[_STDOUT]), bytes(parts[_STDERR]), status


def failure(command: list[str], status: Object, printed: str) -> str:
    """Return a kubelet's message for a command that failed or could not be run."""
    try:
        parsed = msgspec.convert(status, _ExitStatus)
    except msgspec.ValidationError:
        parsed = _ExitStatus()

    for cause in parsed.details.causes:
        if cause.reason == "ExitCode":
            return f"command '{' '.join(command)}' exited with {cause.message}: {printed}"

    return parsed.message or "the command failed"


class _ExitCause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _ExitDetails(msgspec.Struct):
    causes: list[_ExitCause] = []


class _ExitStatus(msgspec.Struct):
    message: str = ""
    details: _ExitDetails = msgspec.field(default_factory=_ExitDetails)
