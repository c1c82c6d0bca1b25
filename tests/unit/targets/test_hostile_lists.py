"""No list of a target is without a bound, whoever asks for it."""

from __future__ import annotations

import pytest
from aiohttp import web

from tests import answering
from vnode.api import kinds
from vnode.api.errors import TooLarge
from vnode.api.target_key import TargetKey
from vnode.kube import answer_limits
from vnode.kube.answer_limits import AnswerLimit
from vnode.targets.cluster_identity import Expected, Recognition, RecognizedClient


async def test_every_list_of_a_target_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_limits, "LIST", AnswerLimit(100_000, 10**9))

    async def page(_request: web.Request) -> web.Response:
        metadata = {"continue": "more"}
        items = [{"metadata": {"name": "x" * 1000}}] * 50
        return web.json_response({"kind": "NodeList", "metadata": metadata, "items": items})

    recognition = Recognition(TargetKey("default", "c2"), Expected, lambda _uid: None)
    async with (
        answering.endpoint(page) as where,
        RecognizedClient(where, recognition, name="c2") as client,
    ):
        with pytest.raises(TooLarge, match="a list of nodes has more than 100000 bytes"):
            await client.list(kinds.NODES)
