"""What the store shows of a Node is a moment old: nothing is written again for that."""

from __future__ import annotations

import asyncio
import copy
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from vnode.api import keys, kinds, objects
from vnode.kube.store import Store
from vnode.nodes import virtual
from vnode.nodes.controller import NodeController
from vnode.runtime.echoes import LOST_AFTER
from vnode.runtime.links import Health, Link, Links, TargetKey

pytestmark = pytest.mark.looptime

TARGET = TargetKey("ns", "t")
NAME = TARGET.node_name


class Shown:
    """An informer by hand: `show` is an event."""

    def __init__(self):
        self.store, self.synced, self._handlers = Store(), asyncio.Event(), []
        self.synced.set()

    def subscribe(self, handler):
        self._handlers.append(handler)

    def show(self, obj):
        old = self.store.put(obj)
        for handler in self._handlers:
            handler(old, obj)


class Server:
    """A Node, as the API server has it; writes are counted."""

    def __init__(self):
        self.node = {**virtual.registration(TARGET), "status": {}}
        self.node["metadata"] |= {"uid": "u", "resourceVersion": "100"}
        self.writes, self.created = [], []

    async def get(self, _kind, _name):
        return copy.deepcopy(self.node)

    async def create(self, _kind, node):
        self.created.append(objects.labels(node)[keys.TARGET_NAME])
        await asyncio.get_running_loop().create_future()

    async def request(self, _method, _path):
        return {"gitVersion": "v1.36.3"}

    async def apply(self, kind, body, *, subresource=""):
        assert kind is kinds.NODES
        self.writes.append(subresource)
        now = copy.deepcopy(self.node)
        for part in ("labels", "annotations"):
            now["metadata"][part] = {
                **now["metadata"].get(part, {}),
                **body["metadata"].get(part, {}),
            }

        now["status"] = {**now["status"], **body.get("status", {})}
        version = int(objects.resource_version(now)) + 1
        now["metadata"]["resourceVersion"] = str(version)
        self.node = now
        return copy.deepcopy(now)


@asynccontextmanager
async def following(clock, *more):
    """A controller whose store shows what the test says; it has just written its Node.

    There are `more` Targets, which have no Node yet.
    """
    server, nodes, summaries, links = Server(), Shown(), Shown(), Links()
    nodes.show(await server.get(kinds.NODES, NAME))
    health = Health(True, "Connected", "it answers", clock.now())
    links.add(Link(TARGET, None, chaperons=Shown(), summaries=summaries, health=health))

    async def synced():
        pass

    controller = NodeController(
        *(server, nodes, links),
        SimpleNamespace(
            wait_synced=synced, keys=lambda: [TARGET, *more], subscribe_keys=lambda _: None
        ),
        advertise_address="10.0.0.1",
        port_of=lambda _name: 10251,
        clock=clock,
    )

    def offer(cpu):
        metadata = {"name": keys.SUMMARY_NAME}
        summaries.show(
            {"metadata": metadata, "capacity": {"cpu": cpu}, "allocatable": {"cpu": cpu}}
        )

    offer("1")
    running = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    assert server.writes == ["", "status"]
    yield SimpleNamespace(server=server, nodes=nodes, controller=controller, offer=offer)
    running.cancel()
    await asyncio.wait([running])


@pytest.fixture(autouse=True)
def no_leases(monkeypatch):
    monkeypatch.setattr("vnode.kube.leases.renew_for_node", lambda *_args: asyncio.sleep(0))


async def test_a_write_is_not_done_again_before_the_store_shows_it(clock):
    async with following(clock) as world:
        cordoned = copy.deepcopy(world.nodes.store.get(NAME))
        cordoned["spec"]["unschedulable"] = True
        world.nodes.show(cordoned)
        await asyncio.sleep(1)
        assert world.server.writes == ["", "status"]
        world.nodes.show(await world.server.get(kinds.NODES, NAME))
        await asyncio.sleep(1)
        assert world.server.writes == ["", "status"]


async def test_what_changes_meanwhile_is_written_once_the_store_shows_the_last_write(clock):
    async with following(clock) as world:
        world.offer("2")
        await asyncio.sleep(1)
        assert world.server.writes == ["", "status"]
        world.nodes.show(await world.server.get(kinds.NODES, NAME))
        await asyncio.sleep(1)
        assert world.server.writes == ["", "status", "status"]
        assert world.server.node["status"]["capacity"] == {"cpu": "2"}


async def test_a_write_that_is_never_shown_is_done_again_in_the_end(clock):
    """The API server was restored from a backup: it counts from a lower number."""
    async with following(clock) as world:
        await asyncio.sleep(LOST_AFTER + 1)
        assert world.server.writes == ["", "status", ""]  # its answer shows the status, too


async def test_a_target_whose_name_fits_no_label_has_no_node(clock):
    """The API server would refuse it, every few seconds: its condition says why there is none."""
    async with following(clock, TargetKey("ns", "x" * 64)) as world:
        assert world.server.created == []

    async with following(clock, TargetKey("ns", "x" * 63)) as world:
        assert world.server.created == ["x" * 63]
