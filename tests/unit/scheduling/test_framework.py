from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cache import Cache
from vnode.scheduling.cycle import CycleState, PlanOutcome
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import (
    BindPlugin,
    FilterPlugin,
    Handle,
    NoArgs,
    PermitPlugin,
    PlanPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    Rejection,
    ReservePlugin,
    ScorePlugin,
)
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Code, Status
from vnode.scheduling.waiting_pods import WaitingPods


class Sort(QueueSortPlugin):
    NAME = "Sort"

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        return (queued.added,)


class Recorder(ReservePlugin, PostBindPlugin, PreBindPlugin, BindPlugin):
    """Answers what the test put in, and writes down what it was asked."""

    NAME = "Recorder"

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.asked: list[str] = []
        self.answers: dict[str, Status] = {}

    def reserve(self, state: CycleState, pod: Object, node_name: str) -> Status:
        return self._answer("reserve")

    def unreserve(self, state: CycleState, pod: Object, node_name: str) -> None:
        self._answer("unreserve")

    async def pre_bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        return self._answer("pre_bind")

    async def bind(self, state: CycleState, pod: Object, node_name: str) -> Status:
        return self._answer("bind")

    def post_bind(self, state: CycleState, pod: Object, node_name: str) -> None:
        self._answer("post_bind")

    def _answer(self, point: str) -> Status:
        self.asked.append(point)
        return self.answers.get(point, SUCCESS)


class Second(Recorder):
    NAME = "Second"


class Fixed(FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin, PostFilterPlugin):
    """Verdicts and scores by node name."""

    NAME = "Fixed"

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.before: Status = SUCCESS
        self.before_score: Status = SUCCESS
        self.verdicts: dict[str, Status] = {}
        self.scores: dict[str, int] = {}
        self.nominates: tuple[str, ...] = ()

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        return self.before

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        return self.verdicts.get(node.name, SUCCESS)

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        return self.before_score

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        return self.scores.get(node.name, 0)

    def post_filter(
        self, state: CycleState, pod: Object, snapshot: Snapshot, statuses: Mapping[str, Status]
    ) -> tuple[Sequence[str], Status]:
        return self.nominates, SUCCESS


class Broken(FilterPlugin):
    NAME = "Broken"

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        raise KeyError("oops")


class Gate(PermitPlugin):
    NAME = "Gate"
    answer: Status = status.wait("a friend")

    def permit(self, state: CycleState, pod: Object, node_name: str) -> tuple[Status, float]:
        return self.answer, 5.0


def handle() -> Handle:
    return Handle(namespace_refusal=any_namespace)


def framework(*plugins: Plugin, weight: int = 1, shared: Handle | None = None) -> Framework:
    shared = shared or handle()
    everyone = (Sort(NoArgs(), shared), *plugins)
    return Framework([(plugin, weight) for plugin in everyone], shared.waiting, LoopTime())


def env(*names: str) -> Snapshot:
    cache = Cache()
    for name in names:
        cache.update_node(virtual_node(name))

    return cache.snapshot()


class LoopTime(ManualClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@pytest.fixture
def fixed() -> Fixed:
    return Fixed(NoArgs(), handle())


def test_nodes_that_pass_come_best_first_with_weighted_scores(fixed: Fixed) -> None:
    fixed.scores = {"a": 10, "b": 90, "c": 50}
    fixed.verdicts = {"b": status.unschedulable("full")}
    result = framework(fixed, weight=3).schedule(pod("p"), env("a", "b", "c"))
    assert result.status.is_success
    assert [(scored.name, scored.total) for scored in result.feasible] == [("c", 150), ("a", 30)]
    assert result.feasible[0].scores == {"Fixed": 150}
    assert result.statuses == {"b": Status(Code.UNSCHEDULABLE, ("full",), "Fixed")}
    assert result.rejections() == {"b": frozenset({"Fixed"})}


def test_equal_nodes_take_turns(fixed: Fixed) -> None:
    machine, snapshot = framework(fixed), env("a", "b", "c")
    firsts = [machine.schedule(pod("p"), snapshot).feasible[0].name for _ in range(6)]
    assert firsts == ["a", "b", "c", "a", "b", "c"]


def test_a_rejection_before_filtering_holds_for_every_node(fixed: Fixed) -> None:
    fixed.before = status.unresolvable("bad spec")
    result = framework(fixed).schedule(pod("p"), env("a", "b"))
    assert {status.message for status in result.statuses.values()} == {"bad spec"}
    assert result.status.plugin == "Fixed"


def test_a_plugin_that_skips_neither_filters_nor_scores(fixed: Fixed) -> None:
    fixed.before = fixed.before_score = SKIP
    fixed.verdicts = {"a": status.unschedulable("full")}
    fixed.scores = {"a": 100}
    result = framework(fixed).schedule(pod("p"), env("a"))
    assert [(scored.name, scored.total) for scored in result.feasible] == [("a", 0)]


def test_candidates_can_be_nominated_where_no_node_passed(fixed: Fixed) -> None:
    fixed.verdicts = dict.fromkeys(("a", "b"), status.unschedulable("full"))
    fixed.nominates = ("b",)
    result = framework(fixed).schedule(pod("p"), env("a", "b"))
    assert result.status.code is Code.UNSCHEDULABLE
    assert result.feasible == ()
    assert result.nominated == ("b",)


def test_a_broken_plugin_is_an_error_that_names_it() -> None:
    result = framework(Broken(NoArgs(), handle())).schedule(pod("p"), env("a"))
    assert result.status.code is Code.ERROR
    assert result.status.message == "plugin Broken failed: KeyError('oops')"


def test_a_score_out_of_range_is_an_error(fixed: Fixed) -> None:
    fixed.scores = {"a": 101}
    result = framework(fixed).schedule(pod("p"), env("a"))
    assert result.status.code is Code.ERROR
    assert "101" in result.status.message


def test_no_nodes_at_all_is_unschedulable(fixed: Fixed) -> None:
    result = framework(fixed).schedule(pod("p"), env())
    assert result.status.code is Code.UNSCHEDULABLE
    assert result.statuses == {}


def test_a_refused_reservation_is_undone_in_reverse() -> None:
    first, second = Recorder(NoArgs(), handle()), Second(NoArgs(), handle())
    second.answers["reserve"] = status.unschedulable("quota")
    outcome = framework(first, second).binding_cycle.reserve(CycleState(), pod("p"), "a")
    assert (outcome.plugin, outcome.message) == ("Second", "quota")
    assert first.asked == second.asked == ["reserve", "unreserve"]


async def test_binding_is_left_to_the_driver_if_all_bind_plugins_skip() -> None:
    recorder = Recorder(NoArgs(), handle())
    machine, state = framework(recorder), CycleState()
    assert (await machine.binding_cycle.pre_bind(state, pod("p"), "a")).is_success
    recorder.answers["bind"] = SKIP
    assert (await machine.binding_cycle.bind(state, pod("p"), "a")).is_skip
    recorder.answers["bind"] = status.error("no")
    assert (await machine.binding_cycle.bind(state, pod("p"), "a")).plugin == "Recorder"
    machine.binding_cycle.post_bind(state, pod("p"), "a")
    assert recorder.asked == ["pre_bind", "bind", "bind", "post_bind"]


@pytest.mark.looptime
async def test_a_held_pod_goes_on_when_it_is_allowed() -> None:
    shared = handle()
    machine = framework(Gate(NoArgs(), shared), shared=shared)
    async with asyncio.TaskGroup() as group:
        permitted = group.create_task(machine.binding_cycle.permit(CycleState(), pod("p"), "a"))
        await asyncio.sleep(1)
        held = shared.waiting.get("p")
        assert held is not None
        assert (held.node_name, held.pending_plugins) == ("a", ("Gate",))
        held.allow("Gate")

    assert permitted.result().is_success
    assert not list(shared.waiting)


@pytest.mark.looptime
@pytest.mark.parametrize("rejected", [True, False])
async def test_a_held_pod_is_refused_by_word_or_by_time(rejected: bool) -> None:
    shared = handle()
    machine = framework(Gate(NoArgs(), shared), shared=shared)
    async with asyncio.TaskGroup() as group:
        permitted = group.create_task(machine.binding_cycle.permit(CycleState(), pod("p"), "a"))
        await asyncio.sleep(1)
        if rejected:
            for held in shared.waiting:
                held.reject("Gate", "gang is gone")
                held.allow("Gate")

    message = "gang is gone" if rejected else "not permitted within 5 s"
    assert permitted.result() == Status(Code.UNSCHEDULABLE, (message,), "Gate")


async def test_a_permit_without_waiting_is_immediate() -> None:
    gate = Gate(NoArgs(), handle())
    gate.answer = SUCCESS
    cycle = framework(gate).binding_cycle
    assert (await cycle.permit(CycleState(), pod("p"), "a")).is_success
    gate.answer = status.unschedulable("no")
    assert (await cycle.permit(CycleState(), pod("p"), "a")).plugin == "Gate"


def test_exactly_one_plugin_sorts_the_queue() -> None:
    with pytest.raises(ConfigError, match="exactly one QueueSort plugin, not 0"):
        Framework([], WaitingPods(), ManualClock())


def test_takers_are_told_apart_by_whether_a_later_filter_minds(fixed: Fixed) -> None:
    class Full(FilterPlugin):
        NAME = "Full"
        IS_ESTIMATE = True

        def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
            return status.unschedulable("full") if node.name == "b" else SUCCESS

    class Planner(PlanPlugin):
        NAME = "Planner"

        def plan(
            self, state: CycleState, pod: Object, snapshot: Snapshot, rejection: Rejection
        ) -> tuple[Status, PlanOutcome]:
            raise AssertionError("it would take the pod for one that is to be placed")

        def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
            return status.unschedulable("planned elsewhere")

    fixed.verdicts["c"] = status.unresolvable("never")
    plugins = (fixed, Planner(NoArgs(), handle()), Full(NoArgs(), handle()))
    able, free = framework(*plugins).takers(pod("p"), env("a", "b", "c"))
    assert (able, free) == (frozenset("ab"), frozenset("a"))
