"""What is kept of large originals is small, and is all that is asked for at each event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.unit.following.fleet import SOON, FollowingFleet
from vnode.api import constraint_size, kinds
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import packed_specs, policy_forms, services

SMALL: Final = 2_000  # parts of what is kept, names aside
RULES: Final[Object] = {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{}] * 5_000}


def original(spec: Object) -> Object:
    return {"metadata": {"name": "web", "namespace": "ns", "uid": "u"}, "spec": spec}


def ingress(count: int) -> Object:
    """Return the specification of one that names so many Secrets, and as many Services."""
    paths = [{"backend": {"service": {"name": f"s{n}"}}} for n in range(count)]
    tls = [{"secretName": f"c{n}"} for n in range(count)]
    return {"ingressClassName": "x", "tls": tls, "rules": [{"http": {"paths": paths}}]}


def service(count: int) -> Object:
    ports = [{"port": n + 1, "protocol": "TCP"} for n in range(count)]
    return {"type": "ClusterIP", "selector": {"app": "web"}, "ports": ports}


TRIMS: Final[list[tuple[Callable[[Object], Object], Callable[[int], Object]]]] = [
    (policy_forms.trim, lambda count: {**RULES, "ingress": [{}] * count}),
    (services.trim_ingress, ingress),
    (services.trim_service, service),
]


@pytest.mark.parametrize(("trim", "spec"), TRIMS)
def test_what_is_large_is_kept_as_json_and_comes_back_whole(
    trim: Callable[[Object], Object], spec: Callable[[int], Object]
) -> None:
    large = original(spec(800))
    kept = trim(large)
    assert constraint_size.has_at_most(SMALL, kept)
    assert packed_specs.unpack(kept)["spec"] == large["spec"]
    few = original(spec(10))
    assert trim(few)["spec"] is few["spec"]


@pytest.mark.parametrize(("trim", "spec"), TRIMS)
def test_of_what_is_too_large_to_follow_little_is_kept(
    trim: Callable[[Object], Object], spec: Callable[[int], Object]
) -> None:
    kept = trim(original(spec(60_000)))
    assert constraint_size.has_at_most(SMALL, kept)
    assert not any(len(each) > SMALL for each in kept.values() if isinstance(each, bytes))
    with pytest.raises(ConfigError, match="spec has over 10000 fields and entries"):
        packed_specs.unpack(kept)


@pytest.mark.parametrize("count", [30, 800, 60_000])
def test_an_ingress_is_followed_by_as_many_names_whatever_is_kept(count: int) -> None:
    whole = original(ingress(count))
    kept = services.trim_ingress(whole)
    assert list(services.backends(kept)) == list(services.backends(whole))
    assert list(services.certificates(kept)) == list(services.certificates(whole))
    assert len(list(services.backends(kept))) == min(count, services.BACKENDS)


@pytest.mark.parametrize("rules", [1, 5_000, 60_000])
def test_whom_a_policy_selects_is_known_however_large_it_is(rules: int) -> None:
    kept = policy_forms.trim(original({**RULES, "ingress": [{}] * rules}))
    form = policy_forms.form_of(kept)
    assert form.selects({"app": "web"})
    assert not form.selects({"app": "b"})
    assert bool(form.problem) == (rules == 60_000)


def test_a_service_that_selects_by_thousands_of_labels_stays() -> None:
    labels = {f"l{n}": "" for n in range(services.SELECTED + 1)}
    whole = original({"selector": labels})
    assert services.selector(whole) == {}
    assert services.selector(services.trim_service(whole)) == {}


@pytest.mark.looptime
@pytest.mark.parametrize(("kind", "spec"), [(kinds.SERVICES, service), (kinds.INGRESSES, ingress)])
async def test_what_is_large_follows_and_what_is_too_large_says_so_and_its_copy_stays(
    clock: Clock, kind: Kind, spec: Callable[[int], Object]
) -> None:
    fleet: Any = FollowingFleet(clock)
    selecting = {"metadata": {"name": "s0", "namespace": "ns"}, "spec": service(1)}
    fleet.source.add(kinds.SERVICES, selecting)
    fleet.source.add(kind, original(spec(800)))
    async with fleet.running():
        fleet.add_pod()
        await asyncio.sleep(10 * SOON)
        before = fleet.gpu.find(kind, "web", "ns")
        assert before is not None
        large = spec(15_000)
        fleet.source.change(kind, "web", "ns", lambda obj: obj["spec"].update(large))
        await asyncio.sleep(10 * SOON)
        assert fleet.gpu.find(kind, "web", "ns") == before
        assert any("divide it" in text for name, text in fleet.events_about if name == "web")
