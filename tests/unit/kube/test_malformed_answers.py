"""What a server answers is an object, or no answer: callers read its fields without a look."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pytest
from aiohttp import web

from tests import answering
from vnode.api import kinds, objects
from vnode.api.errors import Unreachable
from vnode.api.objects import Object
from vnode.kube.client import Client

POD: Final[Object] = {"metadata": {"name": "a", "namespace": "default", "uid": "1"}}
STATUS: Final[Object] = {"kind": "Status", "metadata": {}, "status": "Success"}

MALFORMED: Final[dict[str, Any]] = {
    "a list": [POD],
    "a text": "pod",
    "nothing": None,
    "metadata": {"metadata": "x"},
    "uid": {"metadata": {"uid": {}}},
    "version": {"metadata": {"resourceVersion": 5}},
    "labels": {"metadata": {"labels": ["x"]}},
    "a label": {"metadata": {"labels": {"x": 1}}},
    "annotations": {"metadata": {"annotations": "x"}},
    "finalizers": {"metadata": {"finalizers": {"x": "y"}}},
    "owners": {"metadata": {"ownerReferences": [1]}},
    "spec": {"metadata": {}, "spec": [1]},
    "status": {"metadata": {}, "status": "x"},
}

Ask = Callable[[Client], Awaitable[Object | None]]

WRITES: Final[dict[str, Ask]] = {
    "create": lambda c: c.create(kinds.PODS, POD),
    "subresource": lambda c: c.create(
        kinds.SERVICE_ACCOUNTS, {}, "default", name="a", subresource="token"
    ),
    "patch": lambda c: c.patch(kinds.PODS, "a", {}, "default"),
    "apply": lambda c: c.apply(kinds.PODS, POD),
    "replace": lambda c: c.replace(kinds.PODS, POD),
    "delete": lambda c: c.delete(kinds.PODS, "a", "default"),
    "discard": lambda c: c.discard(kinds.PODS, POD),
}
READS: Final[dict[str, Ask]] = {
    "get": lambda c: c.get(kinds.PODS, "a", "default"),
    "try": lambda c: c.try_apply(kinds.PODS, POD),
}


def answers(value: Any) -> AbstractAsyncContextManager[Client]:
    """Return a client of a server that answers everything with this JSON."""

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(value)

    return answering.client(answer, "hostile")


@pytest.mark.parametrize("ask", [*WRITES, *READS])
@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED)
async def test_what_cannot_be_read_is_no_answer(value: Any, ask: str) -> None:
    async with answers(value) as client:
        with pytest.raises(Unreachable, match="hostile: the answer has no"):
            await (WRITES | READS)[ask](client)


@pytest.mark.parametrize("ask", WRITES)
async def test_a_write_may_be_answered_with_a_status(ask: str) -> None:
    async with answers(STATUS) as client:
        assert not await WRITES[ask](client)


@pytest.mark.parametrize("ask", [*WRITES, *READS])
async def test_what_can_be_read_is_returned_as_it_is(ask: str) -> None:
    async with answers({**POD, "aFieldOfTheFuture": [1]}) as client:
        found = await (WRITES | READS)[ask](client)
        assert found == {**POD, "aFieldOfTheFuture": [1]}


async def test_what_is_malformed_in_a_list_hides_nothing_else() -> None:
    items = [*MALFORMED.values(), POD]
    async with answers({"kind": "PodList", "metadata": {}, "items": items}) as client:
        assert await client.list(kinds.PODS, "default") == [POD]


async def test_malformed_metadata_of_what_is_too_large_hide_nothing_else() -> None:
    """A page that does not fit is read by metadata, which are no better."""
    large = {**POD, "spec": {"x": ["y"] * 3_000_000}}

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("/a"):
            return web.json_response(POD)

        is_metadata = "PartialObjectMetadata" in request.headers["Accept"]
        items = [*MALFORMED.values(), POD] if is_metadata else [large]
        text = json.dumps({"kind": "PodList", "metadata": {}, "items": items})
        return web.Response(text=text, content_type="application/json")

    async with answering.client(answer, "hostile") as client:
        assert {objects.uid(each) for each in await client.list(kinds.PODS, "default")} == {"1"}
