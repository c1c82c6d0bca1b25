"""Load balancers, addresses and classes of Services and Ingresses in targets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import computing
from tests.unit.following.fleet import FollowingFleet
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.cluster_things import DNS_CONTROLLER, INGRESS_CLASS
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following import exposure, services
from vnode.runtime.target_options import NO_OPTIONS, TargetOptions
from vnode.targets import model

US = Identity("c1", "uid-1")
OF_SOURCE = {
    "metallb.universe.tf/address-pool": "rack-a",
    "metallb.io/loadBalancerIPs": "192.0.2.10",
    "service.beta.kubernetes.io/azure-load-balancer-resource-group": "rg-source",
    "service.beta.kubernetes.io/aws-load-balancer-subnets": "subnet-1",
    "external-dns.alpha.kubernetes.io/hostname": "shop.example.com",
    "lbipam.cilium.io/ips": "192.0.2.11",
    "kube-vip.io/loadbalancerIPs": "192.0.2.12",
}
BALANCER = {
    "type": "LoadBalancer",
    "selector": {"app": "web"},
    "ports": [{"port": 80, "nodePort": 31000}],
    "loadBalancerSourceRanges": ["203.0.113.0/24"],
    "externalTrafficPolicy": "Local",
}


def service(annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata = {"name": "web", "namespace": "ns", "uid": "web", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {**BALANCER, **spec}}


def copied(
    original: Object, options: TargetOptions = NO_OPTIONS, present: Object | None = None
) -> Object:
    return services.service(original, US, lambda labels, _kept: labels, options, present)


def test_a_load_balancer_of_which_nothing_stays_is_one_in_the_target() -> None:
    copy = copied(service({"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}))
    assert copy["spec"] == BALANCER
    assert "service.beta.kubernetes.io/azure-load-balancer-internal" in objects.annotations(copy)


def test_without_what_says_how_it_is_reached_there_is_no_load_balancer() -> None:
    pinned = {"loadBalancerIP": "192.0.2.10", "externalIPs": ["198.51.100.7"]}
    for original in (
        service(OF_SOURCE, **pinned, loadBalancerClass="example.com/source-lb"),
        service(loadBalancerIP="192.0.2.10"),
        service({"service.beta.kubernetes.io/aws-load-balancer-security-groups": "sg-1"}),
    ):
        copy = copied(original)
        wanted = {"type": "ClusterIP", "selector": {"app": "web"}, "ports": [{"port": 80}]}
        assert copy["spec"] == wanted
        assert not OF_SOURCE.keys() & objects.annotations(copy).keys()


def test_a_target_may_have_load_balancers_without_it_or_with_it_or_none() -> None:
    original = service(OF_SOURCE, loadBalancerIP="192.0.2.10", externalIPs=["198.51.100.7"])
    without = copied(original, TargetOptions(load_balancers=True))
    assert without["spec"] == BALANCER
    anyway = ("spec.loadBalancerIP", "metallb.io/", "external-dns.alpha.kubernetes.io/")
    some = copied(original, TargetOptions(load_balancers=True, follow_anyway=anyway))
    assert some["spec"] == {**BALANCER, "loadBalancerIP": "192.0.2.10"}
    found = objects.annotations(some)
    assert OF_SOURCE.keys() & found.keys() == {
        "metallb.io/loadBalancerIPs",
        "external-dns.alpha.kubernetes.io/hostname",
    }
    assert DNS_CONTROLLER not in found
    assert copied(service(), TargetOptions(load_balancers=False))["spec"]["type"] == "ClusterIP"


def test_classes_of_load_balancers_are_mapped_and_keep_their_names_otherwise() -> None:
    original = service(loadBalancerClass="a")
    assert copied(original)["spec"]["loadBalancerClass"] == "a"
    for classes, there in (({"a": "b"}, "b"), ({"a": ""}, None), ({"": "c"}, "a")):
        options = TargetOptions(load_balancer_classes=classes)
        assert copied(original, options)["spec"].get("loadBalancerClass") == there

    options = TargetOptions(load_balancer_classes={"": "c"})
    assert copied(service(), options)["spec"]["loadBalancerClass"] == "c"


def test_a_copy_that_has_a_load_balancer_keeps_it_and_gives_up_what_is_fought_over() -> None:
    """As an older version has made it: all of the original was on it."""
    original = service(OF_SOURCE, loadBalancerIP="192.0.2.10", loadBalancerClass="a")
    everything = TargetOptions(follow_anyway=(*OF_SOURCE, "spec.loadBalancerIP"))
    older = copied(original, everything)
    assert older["spec"]["loadBalancerIP"] == "192.0.2.10"
    now = copied(original, TargetOptions(load_balancer_classes={"a": "b"}), older)
    assert now["spec"] == {**BALANCER, "loadBalancerClass": "a"}
    assert OF_SOURCE.keys() & objects.annotations(now).keys() == {
        "metallb.universe.tf/address-pool",
        "service.beta.kubernetes.io/azure-load-balancer-resource-group",
        "service.beta.kubernetes.io/aws-load-balancer-subnets",
    }
    assert copied(original, NO_OPTIONS, now) == now  # and so it stays
    gone = copied(original, TargetOptions(load_balancers=False), now)
    assert gone["spec"]["type"] == "ClusterIP"


def ingress(annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata = {"name": "web", "namespace": "ns", "uid": "i", "annotations": annotations or {}}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    return {"metadata": metadata, "spec": {"defaultBackend": backend, **spec}}


def test_classes_of_ingresses_are_mapped_by_field_and_annotation() -> None:
    options = TargetOptions(ingress_classes={"nginx": "internal", "": "own"})
    by_field = services.ingress(ingress(ingressClassName="nginx"), US, options)
    assert by_field["spec"]["ingressClassName"] == "internal"
    by_annotation = services.ingress(ingress({INGRESS_CLASS: "nginx"}), US, options)
    assert objects.annotations(by_annotation)[INGRESS_CLASS] == "internal"
    assert "ingressClassName" not in by_annotation["spec"]
    assert services.ingress(ingress(), US, options)["spec"]["ingressClassName"] == "own"
    assert "ingressClassName" not in services.ingress(ingress(), US)["spec"]
    assert DNS_CONTROLLER in objects.annotations(services.ingress(ingress(), US))


@pytest.mark.parametrize(
    "name", ["cloud.google.com/backend-config", "beta.cloud.google.com/backend-config"]
)
def test_an_ingress_stays_at_home_by_what_its_backends_say(name: str) -> None:
    backends = [service(), service({name: "{}"})]
    assert name in exposure.ingress_refusal(ingress(), backends, NO_OPTIONS)
    anyway = TargetOptions(follow_anyway=(name,))
    assert exposure.ingress_refusal(ingress(), backends, anyway) == ""


def test_annotations_of_backends_are_not_gone_through() -> None:
    backends = [service({f"example.com/{n}": "" for n in range(5_000)})] * 500
    with computing.within(0.02):
        assert exposure.ingress_refusal(ingress(), backends, NO_OPTIONS) == ""


@pytest.mark.looptime
async def test_an_ingress_stays_at_home_if_its_load_balancer_would_be_another(
    clock: Clock,
) -> None:
    fleet = FollowingFleet(clock)
    fleet.add_original(kinds.SERVICES)
    arn = {"alb.ingress.kubernetes.io/certificate-arn": "arn:aws:acm:1"}
    spec = {"tls": [{"secretName": "cert"}]}
    fleet.source.add(kinds.INGRESSES, ingress(arn, **spec))
    fleet.source.add(kinds.SECRETS, {"metadata": {"name": "cert", "namespace": "ns"}, "data": {}})
    async with fleet.running():
        fleet.add_pod()
        await asyncio.sleep(5)
        assert fleet.copy(kinds.SERVICES) is not None
        assert fleet.copy(kinds.INGRESSES) is None
        assert fleet.gpu.find(kinds.SECRETS, "cert", "ns") is None
        about = [text for name, text in fleet.events_about if "Ingress web" in text]
        assert len(about) == 1
        assert "alb.ingress.kubernetes.io/certificate-arn stays here" in about[0]
        assert keys.FOLLOW_ANYWAY in about[0]
        fleet.source.change(
            kinds.INGRESSES, "web", "ns", lambda obj: obj["metadata"].update(annotations={})
        )
        await asyncio.sleep(5)
        assert fleet.copy(kinds.INGRESSES) is not None
        assert fleet.gpu.find(kinds.SECRETS, "cert", "ns") is not None
        fleet.source.change(
            kinds.INGRESSES, "web", "ns", lambda obj: obj["metadata"].update(annotations=arn)
        )
        await asyncio.sleep(60)
        found = fleet.copy(kinds.INGRESSES)
        assert found is not None  # users may depend on it
        assert not arn.keys() & objects.annotations(found).keys()


@pytest.mark.looptime
async def test_live_copies_of_an_older_version_are_put_right_in_place(clock: Clock) -> None:
    fleet = FollowingFleet(clock)
    fleet.source.add(kinds.SERVICES, service(OF_SOURCE, loadBalancerIP="192.0.2.10"))
    everything = TargetOptions(follow_anyway=(*OF_SOURCE, "spec.loadBalancerIP"))
    original = fleet.source.find(kinds.SERVICES, "web", "ns") or {}
    older = services.service(
        original, Identity("c1", "us"), lambda labels, _kept: labels, everything
    )
    before = fleet.gpu.add(kinds.SERVICES, older)
    async with fleet.running():
        fleet.add_pod()
        await asyncio.sleep(5)
        found = fleet.copy(kinds.SERVICES)
        assert objects.uid(found) == objects.uid(before)
        assert found["spec"]["type"] == "LoadBalancer"
        assert "loadBalancerIP" not in found["spec"]
        version = objects.resource_version(found)
        fleet.add_pod("another")
        await asyncio.sleep(60)
        assert objects.resource_version(fleet.copy(kinds.SERVICES)) == version


def test_a_target_says_what_travels_in_words_that_are_checked() -> None:
    def options(**annotations: str) -> TargetOptions:
        named = {keys.OWN_PREFIX + k.replace("_", "-"): v for k, v in annotations.items()}
        metadata = {"name": "gpu", "namespace": "team", "annotations": named}
        return model.parse({"metadata": metadata, "spec": {"self": True}}).options

    found = options(follow_anyway="metallb.io/*, spec.externalIPs", load_balancers="true")
    assert found.follows_anyway("metallb.io/address-pool")
    assert found.follows_anyway("spec.externalIPs")
    assert not found.follows_anyway("spec.loadBalancerIP")
    assert found.load_balancers is True
    assert options().load_balancers is None
    for bad in ({"follow_anyway": "meta.helm.sh/"}, {"load_balancers": "maybe"}):
        with pytest.raises(ConfigError, match="annotation"):
            options(**bad)
