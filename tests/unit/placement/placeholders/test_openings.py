"""Since when placeholders could start: what is asked about one workload looks at no other one."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from tests.unit.pods.policies import Fixed, spread
from tests.unit.scheduling import costs
from tests.unit.scheduling.builders import ManualClock, pod
from vnode.api import keys
from vnode.api.objects import Object
from vnode.placement.placeholders.openings import PlaceholderOpenings
from vnode.planning.move_policy import TRIED_AGAIN

NODE: Final = "admiralty-gpu"
LINK: Final[Any] = SimpleNamespace(node_name=NODE, health=SimpleNamespace(healthy=True))
FREE: Final[Object] = {"metadata": {"annotations": {keys.IS_RESERVED: "true"}}}
FULL: Final[Object] = {"metadata": {"annotations": {keys.POD_MISSING_SINCE: "now"}}}


class Waiting:
    """Placeholders of workloads, each of which could start."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pods: dict[str, Object] = {}
        self.openings = PlaceholderOpenings(
            self.pods.get, Fixed(spread(group_by="app")), self.clock
        )

    def wait(self, name: str, app: str, chaperon: Object = FREE) -> None:
        """Have a pod of a workload wait there, and its target say whether it could start."""
        made = pod(name, namespace="ns", node="admiralty-b", labels={"app": app})
        made["metadata"]["annotations"] = {keys.PLACEHOLDERS: NODE}
        self.pods[f"ns/{name}"] = made
        self.openings.observe(LINK, made, chaperon)

    def since(self, app: str) -> float | None:
        return self.openings.since(f"label/ns/app={app}", NODE)


def test_one_that_could_start_is_compared_with_no_others() -> None:
    waiting, nobody, spent = Waiting(), Waiting(), list[int]()
    for number in range(500):
        act = partial(waiting.wait, f"p{number}", "busy")
        spent.append(costs.bytecodes(act))

    assert spent[-1] == spent[10]
    asked, before = (costs.bytecodes(partial(each.since, "web")) for each in (waiting, nobody))
    assert asked == before


def test_pods_of_a_workload_have_their_opening_in_common() -> None:
    waiting = Waiting()
    waiting.clock.seconds = 5.0
    for name in ("a", "b"):
        waiting.wait(name, "web")
        waiting.clock.seconds += 10

    assert waiting.since("web") == 5.0
    waiting.wait("a", "web", FULL)
    assert waiting.since("web") == 5.0
    waiting.wait("b", "web", FULL)
    assert waiting.since("web") is None


def test_an_opening_goes_with_its_pod_to_another_workload() -> None:
    waiting = Waiting()
    waiting.clock.seconds = 5.0
    waiting.wait("a", "web")
    waiting.clock.seconds = 9.0
    waiting.wait("a", "db")
    assert (waiting.since("web"), waiting.since("db")) == (None, 5.0)


def test_workloads_that_could_start_at_some_time_are_not_remembered() -> None:
    waiting = Waiting()
    for number in range(100):
        waiting.clock.seconds += 1.0
        for chaperon in (FREE, FULL):
            waiting.wait(f"p{number}", f"app-{number}", chaperon)

    waiting.pods.clear()
    assert costs.entries(waiting.openings._refuted) < 5 * TRIED_AGAIN
