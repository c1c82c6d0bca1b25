"""Calls the agents' webhook as the API server does: by the address in its configuration.

Whether each replica answers at a path shows only to who asks each of them. A Service gives a new
connection to any: so there are many, of which each asks once. A body that is no review is answered
with 400 where the path is served, and with 404 where it is not.
"""

from __future__ import annotations

import asyncio
import ssl
import urllib.parse
from typing import Final

from vnode.api import webhook_paths
from vnode.api.objects import Object

CALLS: Final = 40  # one of three replicas is missed by all once in ten million times
_TIMEOUT: Final = 5.0  # seconds for one
_SERVED, _UNKNOWN = 400, 404


async def failure(client_config: Object, secret: str, authorities: bytes) -> str:
    """Return why a webhook's path with that secret may not be served by all; "" if it seems so."""
    address = _address(client_config)
    plain, _held = webhook_paths.split(address)
    url = urllib.parse.urlsplit(f"{plain}/{secret}")
    context = ssl.create_default_context(cadata=authorities.decode())
    for _ in range(CALLS):
        try:
            async with asyncio.timeout(_TIMEOUT):
                status = await _post(url, context)
        except (OSError, TimeoutError, ValueError, EOFError) as error:
            return (
                f"the agents cannot be reached at {url.scheme}://{url.netloc} from here: {error!r}"
            )

        if status == _UNKNOWN:
            return "there is an agent of an earlier version, which does not know them"

        if status != _SERVED:
            return f"what serves {url.scheme}://{url.netloc} answers with status {status}"

    return ""


def _address(client_config: Object) -> str:
    if url := client_config.get("url"):
        return str(url)

    service = client_config.get("service") or {}
    host = f"{service.get('name')}.{service.get('namespace')}.svc"
    return f"https://{host}:{service.get('port') or 443}{service.get('path') or ''}"


async def _post(url: urllib.parse.SplitResult, context: ssl.SSLContext) -> int:
    """Return the status of the answer to an empty body."""
    reader, writer = await asyncio.open_connection(url.hostname, url.port or 443, ssl=context)
    try:
        request = (
            f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n"
            "Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
        writer.write(request.encode())
        status = (await reader.readline()).split(maxsplit=2)[1:2]
        return int(status[0]) if status else 0
    finally:
        writer.transport.abort()
