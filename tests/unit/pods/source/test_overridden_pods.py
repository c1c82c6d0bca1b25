"""Overrides on their way: in candidates, in what follows, and through changes of a running pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.permitted import MANIFESTS
from tests.unit.overrides.making import patch, policy
from tests.unit.pods.bound_pods import PARENT, SPACE, BoundPodsEnvironment
from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import Target, prefer
from vnode.api import changeable, keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.overrides.overrides import PolicyOverrides
from vnode.pods import changes, chaperons, overriding
from vnode.pods.source import feedback, proxy_state
from vnode.targets.kept_chaperons import trim_chaperon

pytestmark = pytest.mark.looptime
MIRROR: Object = {
    "image": [{"registry": "mirror.example"}],
    "labels": {"team": "blue"},
    "annotations": {"note": "there", "own": "1"},
    "resources": [{"requests": {"cpu": "2"}}],
}


def overrides_of(server: APIServer, *policies: Object) -> PolicyOverrides:
    """Make the overrides of a source in memory, with these policies."""
    for each in policies:
        server.add(kinds.OVERRIDE_POLICIES, each)

    return PolicyOverrides(
        server.client("overrides"),
        labels=lambda _node: {},
        references=lambda _pod: (),
        key=lambda: bytes(32),
    )


# --- candidates


class Lazy:
    """Stands for overrides of a server that is made later."""

    def __init__(self) -> None:
        self.real: Any = overriding.NoOverrides()

    def choose(self, pod: Object, link: Any) -> Any:
        return self.real.choose(pod, link)

    def recorded(self, pod: Object, chaperon: Object, link: Any) -> Any:
        return self.real.recorded(pod, chaperon, link)


@asynccontextmanager
async def scheduling(
    clock: Clock, *targets: Target, policies: list[Object]
) -> AsyncIterator[SourceCluster]:
    lazy = Lazy()
    source = SourceCluster(clock, *targets, overrides=lazy)
    lazy.real = overrides_of(source.server, *policies)
    async with links.following(*lazy.real.informers), source.running():
        yield source


def default(*rules: Object, **spec: Any) -> Object:
    return policy(*rules, namespace="default", **spec)


async def test_a_candidate_has_the_overrides_of_its_target_and_the_proxy_none(
    clock: Clock,
) -> None:
    target = Target("c2", clock)
    rule = {**MIRROR, "clusters": {"names": ["c2"]}}
    async with scheduling(clock, target, policies=[default(rule)]) as source:
        spec = {"containers": [{"name": "main", "image": "nginx:1"}]}
        before = source.add("p", annotations={"note": "here"}, spec=spec)
        await source.until_bound("p")
        made = target.candidate("p")
        (container,) = objects.spec(made)["containers"]
        assert container["image"] == "mirror.example/nginx:1"
        assert container["resources"] == {"requests": {"cpu": "2"}}
        assert objects.labels(made)["team"] == "blue"
        assert objects.annotations(made)["note"] == "there"
        proxy = source.pod("p")
        assert objects.spec(proxy)["containers"] == objects.spec(before)["containers"]
        assert objects.annotations(proxy) == objects.annotations(before)


async def test_other_targets_and_other_pods_get_what_they_would_get_anyway(clock: Clock) -> None:
    target = Target("c2", clock)
    elsewhere = default({**MIRROR, "clusters": {"names": ["c3"]}})
    others = policy(MIRROR, namespace="default", name="b", selector={"matchLabels": {"a": "b"}})
    async with scheduling(clock, target, policies=[elsewhere, others]) as source:
        source.add("p")
        await source.until_bound("p")
        made = target.candidate("p")
        assert not set(objects.annotations(made)) & {keys.OVERRIDES, keys.OVERRIDDEN}


@pytest.mark.parametrize("rule", [patch("remove", "/spec/hostname"), {"image": "x"}])
async def test_where_an_override_fails_the_pod_does_not_go_but_elsewhere(
    clock: Clock, rule: Object
) -> None:
    bad, good = Target("c2", clock), Target("c3", clock)
    prefer(bad, good)
    policies = [default({**rule, "clusters": {"names": ["c2"]}})]
    async with scheduling(clock, bad, good, policies=policies) as source:
        source.add("p")
        await source.until_bound("p")
        assert source.node_of("p") == good.node
        assert bad.asked() == 0


async def test_a_pod_that_goes_nowhere_says_which_policy_and_goes_once_it_is_mended(
    clock: Clock,
) -> None:
    target = Target("c2", clock)
    bad = default(patch("remove", "/spec/hostname"))
    async with scheduling(clock, target, policies=[bad]) as source:
        source.add("p")
        await source.until_said("p", "overridepolicy/default/mirror, rules[0]: patches[0] (remove")
        assert target.asked() == 0


# --- changes of a pod that runs


class Running:
    """A bound pod whose chaperon was made by a policy that has gone since."""

    def __init__(self, clock: Clock, **fields: Any) -> None:
        lazy = Lazy()
        self.env = BoundPodsEnvironment(clock, overrides=lazy)
        self.target = self.env.target
        self.overrides = lazy.real = overrides_of(self.env.source, policy(MIRROR, namespace=SPACE))
        self.fields = fields

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Running]:
        async with links.following(*self.overrides.informers):
            pod = self.env.add(**self.fields)
            override = self.overrides.choose(pod, self.target.link)
            made = chaperons.for_link(
                *(pod, PARENT, self.target.link),
                manifests=MANIFESTS,
                allowed=True,
                override=override,
            )
            made["metadata"]["finalizers"] = [keys.DELEGATE_FINALIZER]
            self.target.server.add(kinds.POD_CHAPERONS, {**made, "status": {"phase": "Running"}})
            self.env.source.remove(kinds.OVERRIDE_POLICIES, "mirror", SPACE)
            async with self.env.running(seconds=5):
                yield self

    @property
    def chaperon(self) -> Object:
        found = self.target.chaperon()
        assert found is not None
        return found

    async def change(self, **changes_: Any) -> None:
        """Change labels, annotations or containers of the proxy, and wait for what comes of it."""

        def do(pod: Object) -> None:
            for field in ("labels", "annotations"):
                pod["metadata"].setdefault(field, {}).update(changes_.get(field, {}))

            if image := changes_.get("image"):
                (container,) = pod["spec"]["containers"]
                pod["spec"]["containers"] = [{**container, "image": image}]

        self.env.change(do)
        await asyncio.sleep(5)


async def test_a_running_pod_that_nobody_changes_costs_nothing(clock: Clock) -> None:
    running = Running(clock, metadata={"annotations": {"note": "here"}})
    async with running.at_work():
        await asyncio.sleep(60)
        assert running.target.writes == []
        reads = [r for r in running.env.source.received("get", kinds.PODS) if r.name]
        assert reads == []
        annotations = objects.annotations(running.env.pod() or {})
        assert (annotations["note"], "own" in annotations) == ("here", False)


async def test_a_change_of_the_proxy_goes_through_the_rules_that_made_its_delegate(
    clock: Clock,
) -> None:
    running = Running(clock)
    async with running.at_work():
        await running.change(image="nginx:2", labels={"app": "db", "team": "red"})
        (container,) = objects.spec(running.chaperon)["containers"]
        assert container["image"] == "mirror.example/nginx:2"
        assert container["resources"] == {"requests": {"cpu": "2"}}
        labels = objects.labels(running.chaperon)
        assert (labels["team"], labels[keys.PREFIX + "app"]) == ("blue", "db")
        writes = len(running.target.writes)
        await asyncio.sleep(60)
        assert len(running.target.writes) == writes


async def test_annotations_that_are_overridden_travel_neither_way(clock: Clock) -> None:
    running = Running(clock, metadata={"annotations": {"note": "here"}})
    async with running.at_work():
        await running.change(annotations={"note": "changed", "plain": "1"})
        for value in ("there", "again"):  # first, as the override has it
            await running.change(annotations={"note": value})

        annotations = objects.annotations(running.chaperon)
        assert (annotations["note"], annotations["plain"]) == ("there", "1")
        running.target.annotate(own="2", plain="2")
        await asyncio.sleep(5)
        back = objects.annotations(running.env.pod() or {})
        assert (back["plain"], "own" in back) == ("2", False)


async def test_a_record_that_the_target_spoils_stops_changes_and_says_so(clock: Clock) -> None:
    running = Running(clock)
    async with running.at_work():
        running.target.annotate(**{keys.OVERRIDES: "{}"})
        await running.change(image="nginx:2")
        (container,) = objects.spec(running.chaperon)["containers"]
        assert container["image"] == "mirror.example/nginx"
        (message,) = running.env.event_messages("ChangeRefused")
        assert "were lost or forged" in message


async def test_admiraltys_targets_feed_back_no_override_either(clock: Clock) -> None:
    running = Running(clock)
    async with running.at_work():
        proxy = running.env.pod() or {}
        assert feedback.annotations_patch(proxy, running.chaperon, two_way=False) == {}


async def test_what_was_overridden_is_undone_for_the_comparison(clock: Clock) -> None:
    running = Running(clock)
    async with running.at_work():
        proxy = proxy_state.trim(running.env.pod() or {})
        shown = trim_chaperon(running.chaperon)
        assert not changes.is_news(proxy, shown, PARENT)
        undone = overriding.undone(shown)
        assert changeable.view(objects.spec(undone)) == changeable.view(objects.spec(proxy))
        assert "team" not in objects.labels(undone)
