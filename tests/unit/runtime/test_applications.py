"""What it takes to find the handler of a path."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from aiohttp.test_utils import make_mocked_request

import vnode
from tests import virtual_nodes
from tests.unit.runtime import served_port
from tests.unit.scheduling import costs
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.routes import Routes
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.routes import Streams
from vnode.runtime.applications import LONGEST, BoundedRouter, application
from vnode.runtime.links import Links

SOURCES = tuple(Path(vnode.__file__).parent.rglob("*.py"))


def cost(path: str) -> int:
    """Return how many bytecodes it takes to look up a path."""
    node = ServedNode("vnode-c2", Links(), virtual_nodes.find)
    routes = Routes(node, cast("Gate", virtual_nodes.Open()), Streams(DisconnectWatch()))
    router, request = routes.application().router, make_mocked_request("GET", path)

    def look_up() -> None:
        with pytest.raises(StopIteration):
            router.resolve(request).send(None)

    look_up()
    return costs.bytecodes(look_up)


def test_the_application_of_each_port_is_made_here() -> None:
    """The router that aiohttp gives to others goes through a path part by part."""
    assert isinstance(application().router, BoundedRouter)
    made = [path for path in SOURCES if "web.Application(" in path.read_text()]
    assert [path.name for path in made] == ["applications.py"]


async def test_a_path_of_a_mib_of_slashes_is_not_looked_up_part_by_part() -> None:
    """It is before anybody was asked who they are."""
    longest = "/logs" + "/a" * ((LONGEST - 5) // 2)
    assert cost("/logs" + "/a" * 20_000) < cost(longest)


@pytest.mark.parametrize("route", ["exec", "attach", "containerLogs"])
async def test_the_longest_names_have_a_handler(route: str) -> None:
    node = ServedNode("vnode-c2", Links(), virtual_nodes.find)
    routes = Routes(node, cast("Gate", virtual_nodes.Open()), Streams(DisconnectWatch()))
    request = make_mocked_request("GET", f"/{route}/{'n' * 63}/{'p' * 253}/{'c' * 63}")
    found = await routes.application().router.resolve(request)
    assert found.http_exception is None


@pytest.mark.parametrize(
    "sent", [served_port.GET, b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", b"what is this\r\n\r\n"]
)
async def test_no_answer_names_the_versions_behind_it(sent: bytes) -> None:
    """Nor do those that aiohttp gives without asking the application."""
    async with served_port.serve() as port:
        reader, _writer = await port.connect(sent)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()

    assert b"server: vnode\r\n" in head
    assert b"python" not in head
    assert b"aiohttp" not in head
