"""Objects that could not be listed do not count as gone."""

from __future__ import annotations

import pytest
from aiohttp import web

from tests import answering
from vnode.api import kinds
from vnode.api.errors import ServerError, Unreachable, VnodeError
from vnode.cli import waiting

NO_STATUS = {"kind": "Status", "code": 500, "message": "etcd is away"}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [(500, NO_STATUS, ServerError), (200, {}, Unreachable)],
    ids=["error", "no list"],
)
async def test_objects_that_could_not_be_listed_are_not_gone(
    status: int, body: dict[str, object], error: type[VnodeError]
) -> None:
    """Chaperons are let go, and definitions removed, once all that hangs on them is gone."""

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    async with answering.client(answer, "test") as client:
        with pytest.raises(error):
            await waiting.until_gone(client, kinds.PODS, lambda _pod: True, 0.1)
