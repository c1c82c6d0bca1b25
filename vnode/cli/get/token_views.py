"""Defines what `vnode get` shows of AuthTokenRequests. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from vnode.api import kinds
from vnode.api.objects import Object
from vnode.cli.get import token_cells, views
from vnode.cli.get.views import Row, View
from vnode.cli.tables import Column
from vnode.kube.watching import ListOptions


def _timed(read: Callable[[Object, datetime], str]) -> Callable[[Row], str]:
    return lambda row: read(row.object, row.now)


TOKENS: Final = View(
    "tokens",
    lambda namespace: [ListOptions(kinds.AUTH_TOKEN_REQUESTS, namespace)],
    (
        views.NAMESPACE,
        views.NAME,
        Column("TARGET", views.meta(token_cells.target)),
        Column("ACCOUNT", views.meta(token_cells.account)),
        Column("READY", _timed(token_cells.ready)),
        Column("REASON", _timed(token_cells.reason)),
        Column("EXPIRES", _timed(token_cells.expires)),
        Column("RENEWAL", _timed(token_cells.renewal)),
        views.AGE,
        Column("MESSAGE", _timed(token_cells.message), wide=True),
    ),
    kind_of=lambda _obj: kinds.AUTH_TOKEN_REQUESTS,
)

VIEWS: Final = (TOKENS,)
