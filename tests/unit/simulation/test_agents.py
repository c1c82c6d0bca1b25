"""The simulation runs the parts of real agents, but for those that are named here."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.memory_streams import MemoryStreams
from tests.simulation import loop
from tests.simulation.agents import SimulatedAgent, SimulatedReplica
from tests.simulation.clusters import SimulatedCluster, prepare_source, prepare_target
from vnode.agent.parts import AwaitedStep, Part, Parts
from vnode.agent.replica import Agent
from vnode.agent.term import Term
from vnode.scheduling import registry


@pytest.fixture(autouse=True)
def own_plugins_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "installed", list)  # which reads the disk


def agent() -> tuple[SimulatedAgent, SimulatedReplica]:
    """Return the agent of a source with one target, which runs."""
    source, target = (SimulatedCluster(name, random.Random(1), 0.01) for name in ("c1", "c2"))
    prepare_source(source, ["c2"])
    prepare_target(target, [2])
    made = SimulatedAgent(source, {"c2": target.server}, 1, MemoryStreams({}))
    made.start()
    assert made.replica is not None
    return made, made.replica


def names(parts: Iterable[Part | AwaitedStep]) -> Counter[str]:
    return Counter(part.name for part in parts)


async def _lists() -> tuple[Parts, Parts, Parts, Parts]:
    """Return the parts of a real replica and of the simulated one, then those of their terms."""
    simulated, replica = agent()
    term = replica.make_term()
    found = (
        (*Agent.parts(replica), *Agent.kubelet_parts(replica)),
        (*replica.parts(), *replica.kubelet_parts()),
        Term.parts(term),
        term.parts(),
    )
    await simulated.kill()
    return found


def test_nothing_of_an_agent_is_left_out_unsaid() -> None:
    replica, simulated, term, simulated_term = loop.run(_lists())
    assert names(replica) - names(simulated) == Counter(
        {
            "authority-loaded": 1,
            "authority": 1,
            "memory-frozen": 1,
            "memory": 1,
            "kubelet-certified": 1,
            "spans": 1,
            "dashboard": 1,
            "kubelet-certificate": 1,
            "kubelet": 1,
        }
    )
    assert names(term) == names(simulated_term)
    assert not names(simulated) - names(replica)


def test_connections_and_servers_are_replaced_and_nothing_else() -> None:
    replica, simulated, _term, _simulated = loop.run(_lists())
    needing = {part.name for part in replica if part.needs_servers}
    assert needing & set(names(simulated)) == {"targets", "servers"}


def test_the_configuration_of_the_simulation_asks_for_all_but_what_only_few_agents_do() -> None:
    _replica, simulated, _term, term = loop.run(_lists())
    unasked = {part.name for part in (*simulated, *term) if not part.when}
    assert unasked == {
        "issued-tokens",
        "kueue-checks",
        "lasting-rights",
        "missing-scores",
        "multikueue",
        "published-scores",
        "scores",
        "scores-known",
        "target-sets",
    }


def test_each_part_that_is_simulated_runs() -> None:
    async def run() -> tuple[Counter[str], Counter[str]]:
        simulated, replica = agent()
        listed = (*replica.parts(), *replica.make_term().parts())
        await asyncio.sleep(5)
        running = Counter(task.get_name() for task in asyncio.all_tasks())
        await simulated.kill()
        return names(part for part in listed if isinstance(part, Part) and part.when), running

    wanted, running = loop.run(run())
    assert wanted["scheduler"] == 1
    assert not wanted - running


def test_pods_are_scheduled_and_moved_once_policies_are_known() -> None:
    *_others, term = loop.run(_lists())
    order = [part.name for part in term]
    known = order.index("placement-policies-known")
    assert order[-1] == "scheduler"
    assert order[0] == "namespaces-known"
    for name in ("deletion-costs", "placeholders", "moves", "failovers", "preserved-states"):
        assert known < order.index(name)
