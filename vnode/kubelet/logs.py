"""Serves `containerLogs`: the delegate's log, copied from the target's answer as it arrives."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp import web

from vnode.api.errors import ApiError, Unreachable
from vnode.kubelet import queries, target_errors
from vnode.kubelet.delegates import Delegate, ServedNode, audit_stream, has_container
from vnode.kubelet.refusal import Refused
from vnode.kubelet.stream_openings import BUFFERED
from vnode.kubelet.streams import sockets
from vnode.kubelet.streams.pace import Pace, StreamPaces, go_on

_OPENING: Final = 60.0  # seconds until a log begins that need not wait for its first line

log = logging.getLogger(__name__)


async def serve(paces: StreamPaces, node: ServedNode, request: web.Request) -> web.StreamResponse:
    """Answer with the log of one container, at the pace of the streams of its namespace.

    The request to the target ends with the handler, which is cancelled when the caller disconnects.
    If the target breaks off in the middle, the answer ends without its last chunk, so that the
    caller can tell.
    """
    path = request.match_info
    options = queries.logs(list(request.query.items()), path["container"])
    pod = await node.pod(path["namespace"], path["pod"])
    if not has_container(pod, path["container"]):
        raise Refused(404, f'container "{path["container"]}" not found in pod "{path["pod"]}"')

    delegate = node.delegate(pod)
    try:
        return await _copy(delegate, dict(options), request, paces.of(path["namespace"]))
    except ApiError as error:
        raise _refusal(delegate, error) from error
    except Unreachable as error:
        raise Refused(500, f"target cannot be reached: {error}") from error


async def _copy(
    delegate: Delegate, options: dict[str, str], request: web.Request, pace: Pace
) -> web.StreamResponse:
    # A kubelet begins its answer with the first line of the log, for which `--follow` may wait.
    opening = None if options.get("follow") == "true" else _OPENING
    async with delegate.client.stream(
        *("GET", delegate.path("log")), query=options, silence=None, opening=opening, is_plain=True
    ) as answer:
        target_errors.check_log(delegate.client.name, answer)
        audit_stream(delegate, "log", options.get("container", ""))
        if answer.connection is not None:  # a short answer has released its connection already
            sockets.keep_alive(answer.connection.transport)

        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if request.transport is not None:
            request.transport.set_write_buffer_limits(high=request[BUFFERED])

        try:
            async for chunk in answer.content.iter_chunked(request[BUFFERED]):
                await response.write(chunk)
                await go_on(pace(len(chunk)))
        except aiohttp.ClientError as error:
            _abort(request, delegate, error)

        return response


def _abort(request: web.Request, delegate: Delegate, error: Exception) -> None:
    if request.transport is not None:
        log.info("log of %s/%s broke off: %s", delegate.namespace, delegate.name, error)
        request.transport.abort()


def _refusal(delegate: Delegate, error: ApiError) -> Refused:
    """Return the refusal for an error of the target.

    The API server shows users the text of 400, 403 and 500 only: all other codes become 400.
    """
    kept = (HTTPStatus.FORBIDDEN, HTTPStatus.INTERNAL_SERVER_ERROR)
    if error.status == HTTPStatus.UNAUTHORIZED:
        return Refused(500, f"target {delegate.client.name} refuses the credentials we have")

    return Refused(error.status if error.status in kept else 400, error.message)
