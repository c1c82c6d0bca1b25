"""The binding cycle, by what its plugins say."""

from __future__ import annotations

from typing import Any

from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod
from vnode.api.objects import Object
from vnode.pods.source.binding import Binder
from vnode.runtime.links import Links
from vnode.scheduling.binding_cycle import BindingCycle
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.plugin import BindPlugin, Handle, NoArgs, PreBindPlugin, ReservePlugin
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.status import SUCCESS, Status, unschedulable


class Recorder(ReservePlugin, PreBindPlugin, BindPlugin):
    """Binds by itself, and writes down what it was asked."""

    NAME = "Recorder"

    def __init__(self) -> None:
        super().__init__(NoArgs(), Handle(namespace_refusal=any_namespace))
        self.asked: list[str] = []
        self.before = SUCCESS

    def reserve(self, state: CycleState, pod: Object, node_name: str) -> Status:
        self.asked.append("reserve")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Object, node_name: str) -> None:
        self.asked.append("unreserve")

    async def pre_bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        self.asked.append("pre_bind")
        return self.before

    async def bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        self.asked.append("bind")
        return SUCCESS


async def bind(recorder: Recorder) -> bool:
    clock = ManualClock()
    cycle = BindingCycle([recorder], recorder.handle.waiting, clock)
    none: Any = None
    binder = Binder(none, Links(), cycle, lookup=lambda _key: None, allowed=none, clock=clock)
    queued = QueuedPod(pod("p"), "p", 0, 0.0)
    return await binder.bind(queued, "a", CycleState(), lambda _pod: True)


async def test_a_plugin_that_has_bound_the_pod_is_taken_at_its_word() -> None:
    recorder = Recorder()
    assert await bind(recorder)
    assert recorder.asked == ["reserve", "pre_bind", "bind"]


async def test_a_no_on_the_way_undoes_what_was_reserved() -> None:
    recorder = Recorder()
    recorder.before = unschedulable("not now")
    assert not await bind(recorder)
    assert recorder.asked == ["reserve", "pre_bind", "unreserve"]
