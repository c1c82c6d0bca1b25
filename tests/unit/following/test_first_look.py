"""Whether a target has copies at all is asked without reading what they hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from tests import answering
from vnode.api import kinds
from vnode.api.errors import TooLarge
from vnode.api.target_key import TargetKey
from vnode.following.remote_informers import has_none
from vnode.kube.transport import METADATA_LIST


@pytest.mark.parametrize(
    ("items", "empty"), [([], True), (None, True), ([{"metadata": {"name": "a"}}], False)]
)
async def test_metadata_of_one_object_are_enough(items: list[Any] | None, empty: bool) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Accept"] == METADATA_LIST
        assert request.query["limit"] == "1"
        return web.json_response({"kind": "PartialObjectMetadataList", "items": items})

    async with answering.client(answer, "c2") as client:
        link: Any = SimpleNamespace(client=client, target=TargetKey("", "c2"))
        assert await has_none(link, kinds.SECRETS, "a=b") is empty


async def test_an_answer_that_is_no_list_says_nothing() -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"kind": "PartialObjectMetadataList"})

    async with answering.client(answer, "c2") as client:
        link: Any = SimpleNamespace(client=client, target=TargetKey("", "c2"))
        assert not await has_none(link, kinds.SECRETS, "a=b")


async def test_an_answer_that_takes_long_to_decode_is_refused() -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"kind": "SecretList", "items": [[[]]] * 10_000})

    async with answering.client(answer, "c2") as client:
        link: Any = SimpleNamespace(client=client, target=TargetKey("", "c2"))
        with pytest.raises(TooLarge):
            await has_none(link, kinds.SECRETS, "a=b")
