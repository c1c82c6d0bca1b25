"""A pod that comes or goes wakes those whose verdict it may change, and not everybody."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from scheduler_plugins.placement import PlacementPolicy
from scheduler_plugins.pod_topology_spread import PodTopologySpread
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import queued_pod
from vnode.scheduling.cache import Cache
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEvent, ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import Handle, NoArgs
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.unschedulable_pods import MOST_COMPARED

Plugin = InterPodAffinity | PodTopologySpread
HANDLE = Handle(namespace_refusal=any_namespace)
AFFINITY = InterPodAffinity(InterPodAffinityArgs(), HANDLE)
CROSSING = InterPodAffinity(InterPodAffinityArgs(cross_namespace_anti_affinity=True), HANDLE)
SPREAD = PodTopologySpread(NoArgs(), HANDLE)

SPACES, APPS = st.sampled_from(["team-a", "team-b"]), st.sampled_from(["web", "db"])
WHOM: Any = st.sampled_from(
    [{}, {"namespaces": ["team-b"]}, {"namespaceSelector": {}}, {"namespaces": ["team-a", "x"]}]
)
TERMS = st.builds(
    lambda app, whom: {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": app}},
        **whom,
    },
    APPS,
    WHOM,
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@st.composite
def pods(draw: Any, uid: str, node: str = "") -> Object:
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": draw(APPS)}},
    }
    return pod(
        uid,
        namespace=draw(SPACES),
        labels={"app": draw(APPS)},
        node=node,
        affinity={
            "podAffinity": {REQUIRED: draw(st.lists(TERMS, max_size=2))},
            "podAntiAffinity": {REQUIRED: draw(st.lists(TERMS, max_size=2))},
        },
        topologySpreadConstraints=draw(st.sampled_from([[], [spread]])),
    )


def passing(plugin: Plugin, cache: Cache, waiting: Object) -> set[str]:
    state, snapshot = CycleState(), cache.snapshot()
    if plugin.pre_filter(state, waiting, snapshot).is_skip:
        return {node.name for node in snapshot}

    return {node.name for node in snapshot if plugin.filter(state, waiting, node).is_success}


def concerned(plugin: Plugin, kind: EventKind, waiting: Object, about: Object) -> bool:
    (hint,) = (hint for hint in plugin.events_to_register() if hint.kind is kind)
    assert hint.scope is not None
    assert hint.read is not None
    scope = hint.scope(waiting)
    return (scope is None or objects.namespace(about) in scope) and (
        hint.read(waiting).is_helped_by(hint.read(about))
    )


@pytest.mark.parametrize("plugin", [AFFINITY, CROSSING, SPREAD])
@given(pods("waiting"), pods("comes", "a"), st.lists(pods("placed", "b"), max_size=1))
def test_who_may_be_helped_is_woken(
    plugin: Plugin, waiting: Object, comes: Object, placed: list[Object]
) -> None:
    cache = Cache()
    for name in "ab":
        cache.update_node(virtual_node(name, labels={"zone": name}))

    for each in placed:
        cache.set_pod(each)

    without = passing(plugin, cache, waiting)
    cache.set_pod(comes)
    having = passing(plugin, cache, waiting)
    if having - without:
        assert concerned(plugin, EventKind.POD_ADD, waiting, comes)

    if without - having:
        assert concerned(plugin, EventKind.POD_DELETE, waiting, comes)
        assert concerned(plugin, EventKind.POD_FORGOTTEN, waiting, comes)


async def waiting_queue(
    *waiting: Object, plugin: Plugin | PlacementPolicy = AFFINITY
) -> SchedulingQueue:
    registered = frozenset[ClusterEventWithHint](plugin.events_to_register())
    queue = SchedulingQueue(
        ManualClock(), lambda queued: (queued.added,), {plugin.NAME: registered}
    )
    for each in waiting:
        queue.add(each)
        assert (await queue.pop()).uid == objects.uid(each)
        queue.reject(objects.uid(each), {"a": frozenset({plugin.NAME})})

    return queue


def wanting(uid: str, app: str, namespace: str = "team-a", **whom: Any) -> Object:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **whom}
    return pod(uid, namespace=namespace, affinity={"podAffinity": {REQUIRED: [term]}})


async def test_a_pod_wakes_only_those_whose_terms_select_it() -> None:
    queue = await waiting_queue(
        wanting("web", "web"),
        wanting("db", "db"),
        wanting("theirs", "db", namespace="team-b"),
        wanting("anywhere", "db", namespace="team-b", namespaceSelector={}),
    )
    came = pod("new", namespace="team-a", labels={"app": "db"}, node="a")
    queue.move(ClusterEvent(EventKind.POD_ADD, "a", pod=came))
    places = [queue.place(uid) for uid in ("web", "db", "theirs", "anywhere")]
    asleep, woken = queued_pod.UNSCHEDULABLE, queued_pod.BACKOFF
    assert places == [asleep, woken, asleep, woken]


async def test_however_many_wait_little_is_compared_at_an_event() -> None:
    """Beyond, pods of the namespaces that it concerns are tried, and none of another that waits."""
    most = MOST_COMPARED // 6  # a pod, a term and its expression
    many = [wanting(f"p{number}", "web", namespaceSelector={}) for number in range(most + 5)]
    others = [
        wanting(f"q{number}", "web", namespace="team-b", namespaceSelector={})
        for number in range(5)
    ]
    queue = await waiting_queue(*many, *others)
    came = pod("new", namespace="team-a", labels={"app": "db"}, node="a")
    queue.move(ClusterEvent(EventKind.POD_ADD, "a", pod=came))
    assert queue.statistics()[queued_pod.BACKOFF] == 5
    assert queue.place("q4") == queued_pod.UNSCHEDULABLE


async def test_what_frees_a_place_in_a_plan_wakes_pods_of_that_namespace_only() -> None:
    """A workload is of one namespace; a tenant's pods that come and go wake nobody else's."""
    plugin, gone = PlacementPolicy(NoArgs(), HANDLE), pod("gone", namespace="team-a", node="a")
    for event in (
        ClusterEvent(EventKind.POD_DELETE, "a", pod=gone),
        ClusterEvent(EventKind.PLAN_FREED, namespace="team-a"),
    ):
        ours, theirs = pod("ours", namespace="team-a"), pod("theirs", namespace="team-b")
        queue = await waiting_queue(ours, theirs, plugin=plugin)
        queue.move(event)
        assert queue.place("ours") == queued_pod.BACKOFF
        assert queue.place("theirs") == queued_pod.UNSCHEDULABLE
