"""Makes the applications of all ports, which find a handler in a time that no path decides.

A router of aiohttp looks up a path, then what is before its last slash, and so on. It does so
before anybody is asked who they are, and where a line may have a MiB, one of slashes took minutes.
Nor does an answer say of which versions of Python and aiohttp it comes, not even in those
that aiohttp gives by itself to what is no request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from aiohttp import web, web_response
from aiohttp.web_urldispatcher import MatchInfoError

LONGEST: Final = 2048
"""Bytes of a path that may have a handler: of the names in one, none has more than 253."""
_BODY: Final = 1024**2  # bytes, as aiohttp's own

web_response.SERVER_SOFTWARE = "vnode"  # type: ignore[attr-defined]  # the header Server


class BoundedRouter(web.UrlDispatcher):
    """Finds no handler for a path that is longer than any."""

    async def resolve(self, request: web.Request) -> web.UrlMappingMatchInfo:
        """Return what to do with a request."""
        if len(request.rel_url.raw_path) > LONGEST:
            return MatchInfoError(web.HTTPNotFound())

        return await super().resolve(request)


def application(
    middlewares: Iterable[Callable[..., Any]] = (), *, client_max_size: int = _BODY
) -> web.Application:
    """Make an application, which has no routes yet; bodies may have `client_max_size` bytes."""
    app = web.Application(middlewares=list(middlewares), client_max_size=client_max_size)
    app._router = BoundedRouter()  # aiohttp warns of one that is handed over
    return app
