"""Finds the handler of a request, in a time that its path does not decide.

A router of aiohttp looks up a path, then what is before its last slash, and so on. It does so
before anybody is asked who they are, and where a line may have a MiB, one of slashes took minutes.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web
from aiohttp.web_urldispatcher import MatchInfoError

LONGEST: Final = 2048
"""Bytes of a path that may have a handler: of the names in one, none has more than 253."""


class BoundedRouter(web.UrlDispatcher):
    """Finds no handler for a path that is longer than any."""

    async def resolve(self, request: web.Request) -> web.UrlMappingMatchInfo:
        """Return what to do with a request."""
        if len(request.rel_url.raw_path) > LONGEST:
            return MatchInfoError(web.HTTPNotFound())

        return await super().resolve(request)
