from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from tests.permitted import NO_CLIENT
from vnode.api import keys, kinds
from vnode.api.clock import SystemClock
from vnode.api.identity import Identity
from vnode.following.config_objects import ConfigObjects
from vnode.following.family import FamilyContext
from vnode.following.network_objects import NetworkObjects
from vnode.following.reference_index import Key, Need, ReferenceIndex
from vnode.following.references import Ref
from vnode.following.tls import LOOKED_AT, TlsSecrets
from vnode.runtime.links import Links
from vnode.runtime.target_options import NO_OPTIONS

US = Identity("c1", "uid-1")
CERTIFICATE = Ref(kinds.SECRETS, "ns", "cert")
HERE = Key("n1", CERTIFICATE)
LINK = SimpleNamespace(node_name="n1", candidate=lambda _uid: None, options=NO_OPTIONS)


def named(name, **spec):
    return {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec}


def pod(node="n1"):
    found = named("p", nodeName=node)
    found["metadata"]["labels"] = {"app": "web"}
    return found


def ingress(*secrets):
    backend = {"service": {"name": "web"}}
    tls = [{"secretName": secret} for secret in secrets]
    return named("site", defaultBackend=backend, tls=tls)


SERVICE = named("web", selector={"app": "web"})


def context(wake=None, links=None):
    clock = SystemClock()
    return FamilyContext(NO_CLIENT, links or Links(), US, wake, None, None, clock, None)


@pytest.fixture
def woken():
    return []


@pytest.fixture
def network(woken):
    """Return network objects that know all Services and Ingresses of the source: there are none."""
    network = NetworkObjects(
        context(woken.append),
        relabel=None,
        target_exists=None,
        active=True,
    )
    for kind, informer in network._originals.items():
        informer.subscribe(lambda old, new, kind=kind: network._on_original(kind, old, new))
        informer.synced.set()

    return network


VERSIONS = itertools.count(1)


def put(network, kind, obj):
    obj["metadata"]["resourceVersion"] = str(next(VERSIONS))
    network._originals[kind]._put(obj)


def wake_stale(network):
    """Wake the Ingresses that something has made stale."""
    while network._stale.step():
        pass


@pytest.fixture
def family(network, clock):
    index = ReferenceIndex(lambda _key: None, clock)
    return ConfigObjects(context(), index, [TlsSecrets(network)])


def test_a_certificate_is_wanted_where_its_ingress_is(network, family, woken):
    put(network, kinds.SERVICES, SERVICE)
    put(network, kinds.INGRESSES, ingress("cert"))
    assert family.need(HERE, LINK) is Need.NONE
    network.on_pod(None, pod())
    wake_stale(network)
    assert HERE in woken
    assert family.need(HERE, LINK) is Need.WANTED
    assert family.need(Key("n2", CERTIFICATE), LINK) is Need.NONE
    assert HERE in family.keys_on("n1")
    assert [about["name"] for about in family.involved_objects(HERE)] == ["site"]


def test_only_secrets_are_wanted_by_that_name(network, family):
    put(network, kinds.SERVICES, SERVICE)
    put(network, kinds.INGRESSES, ingress("cert"))
    network.on_pod(None, pod())
    assert family.need(Key("n1", Ref(kinds.CONFIG_MAPS, "ns", "cert")), LINK) is Need.NONE


def test_one_that_an_ingress_names_no_more_is_looked_at(network, family, woken):
    put(network, kinds.SERVICES, SERVICE)
    put(network, kinds.INGRESSES, ingress("cert"))
    network.on_pod(None, pod())
    woken.clear()
    put(network, kinds.INGRESSES, ingress("other"))
    assert {HERE, Key("n1", Ref(kinds.SECRETS, "ns", "other"))} <= set(woken)
    assert family.need(HERE, LINK) is Need.NONE


def test_one_goes_with_the_service_behind_its_ingress_and_with_the_last_pod(network, family, woken):
    put(network, kinds.SERVICES, SERVICE)
    put(network, kinds.INGRESSES, ingress("cert"))
    network.on_pod(None, pod())
    wake_stale(network)
    woken.clear()
    network._originals[kinds.SERVICES]._remove("ns/web")
    wake_stale(network)
    assert HERE in woken
    assert family.need(HERE, LINK) is Need.NONE
    put(network, kinds.SERVICES, SERVICE)
    wake_stale(network)
    woken.clear()
    network.on_pod(pod(), None)
    wake_stale(network)
    assert HERE in woken
    assert family.need(HERE, LINK) is Need.NONE


def test_an_ingress_that_stays_at_home_keeps_its_certificate_there(network, family):
    put(network, kinds.SERVICES, SERVICE)
    kept = ingress("cert")
    kept["metadata"]["annotations"] = {keys.NO_FOLLOW: ""}
    put(network, kinds.INGRESSES, kept)
    network.on_pod(None, pod())
    assert family.need(HERE, LINK) is Need.NONE


def test_nothing_is_removed_before_ingresses_are_known(network, family):
    network._originals[kinds.INGRESSES].synced.clear()
    assert family.need(HERE, LINK) is Need.TOLERATED


def test_originals_are_watched_while_an_ingress_with_pods_may_want_them(network):
    demand = TlsSecrets(network)
    put(network, kinds.INGRESSES, ingress("cert"))
    assert not demand.in_namespace("ns")
    network.on_pod(None, pod())
    assert demand.in_namespace("ns")
    put(network, kinds.INGRESSES, ingress())
    assert not demand.in_namespace("ns")


def test_a_changed_original_is_looked_at_wherever_it_is_used(network, clock):
    woken, links = [], [LINK, SimpleNamespace(node_name="n2", candidate=lambda _uid: None)]
    index = ReferenceIndex(lambda _key: None, clock)
    family = ConfigObjects(context(woken.append, links), index, [TlsSecrets(network)])
    put(network, kinds.SERVICES, SERVICE)
    put(network, kinds.INGRESSES, ingress("cert"))
    network.on_pod(None, pod())
    family._on_original(kinds.SECRETS, None, named("cert"))
    assert woken == [HERE]


def test_originals_are_watched_while_a_global_ingress_without_pods_may_want_them(network):
    demand, everywhere = TlsSecrets(network), ingress("cert")
    everywhere["metadata"]["annotations"] = {keys.GLOBAL: "true"}
    put(network, kinds.INGRESSES, everywhere)
    assert demand.in_namespace("ns")
    assert not demand.in_namespace("other")


class ManyIngresses:
    """Ingresses that all name one Secret; `wanting` are those that are where the look is at."""

    known = True

    def __init__(self, count, cost=1):
        self.named = [named(f"i{number:05}") for number in range(count)]
        self.wanting, self.asked, self._cost = set(), [], cost

    def ingresses_with(self, _ref):
        return self.named

    def need_of_certificates(self, key, _link):
        self.asked.append(key.ref.name)
        return Need.WANTED if key.ref.name in self.wanting else Need.NONE

    def cost_of_need(self, _ingress, _need):
        return self._cost


def test_of_thousands_that_name_one_secret_some_are_asked_and_the_others_the_next_time():
    network = ManyIngresses(2 * LOOKED_AT + 10)
    demand = TlsSecrets(network)
    network.wanting = {f"i{2 * LOOKED_AT:05}"}
    assert demand.need(HERE, LINK) is Need.TOLERATED
    assert len(network.asked) == LOOKED_AT
    assert demand.need(HERE, LINK) is Need.TOLERATED
    assert demand.need(HERE, LINK) is Need.WANTED
    assert len(network.asked) == 2 * LOOKED_AT + 1
    network.asked.clear()
    assert demand.need(HERE, LINK) is Need.WANTED  # that one is asked first by now
    assert network.asked == [f"i{2 * LOOKED_AT:05}"]


def test_the_parts_of_those_that_name_a_secret_count():
    network = ManyIngresses(100, cost=LOOKED_AT // 10)
    assert TlsSecrets(network).need(HERE, LINK) is Need.TOLERATED
    assert len(network.asked) == 10


def test_all_of_a_few_are_asked_wherever_a_look_begins():
    network = ManyIngresses(3)
    demand = TlsSecrets(network)
    network.wanting = {"i00002"}
    assert demand.need(HERE, LINK) is Need.WANTED
    network.wanting = {"i00000"}
    assert demand.need(HERE, LINK) is Need.WANTED
    network.wanting = set()
    assert demand.need(HERE, LINK) is Need.NONE


def test_an_ingress_costs_what_is_looked_at_of_it(network):
    rules = [{"http": {"paths": [{"backend": {"service": {"name": f"s{n}"}}} for n in range(20)]}}]
    large = named("site", rules=rules)
    assert network.cost_of_need(large, Need.NONE) == 21
    network._links = [LINK] * 7
    assert network.cost_of_need(large, Need.TOLERATED) == 28
