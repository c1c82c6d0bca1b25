"""Services and Ingresses follow the pods behind them, and load balancers' addresses come back."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import kit
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

LABEL = keys.PREFIX + "app"
CILIUM, _ = keys.CILIUM_GLOBAL


def service(name: str, app: str, **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": 8080}], **spec},
    }


def ingress(name: str, backend: str) -> Object:
    path = {
        "path": "/",
        "pathType": "Prefix",
        "backend": {"service": {"name": backend, "port": {"number": 80}}},
    }
    rules = [{"host": "only.example.com"}, {"http": {"paths": [path]}}]
    return {"metadata": {"name": name}, "spec": {"rules": rules}}


def certified(name: str) -> Object:
    body = ingress(name, name)
    return {**body, "spec": {**body["spec"], "tls": [{"secretName": name}]}}


def node_ports(obj: Object) -> list[int]:
    return [port["nodePort"] for port in objects.spec(obj)["ports"]]


async def run(source: Client, name: str, target: str = "c2") -> Object:
    pod = kit.pod_in(target, name)
    await source.create(kinds.PODS, pod, "default")
    return await kit.until_running(source, name)


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:6]}"


async def until_there(client: Client, kind: Kind, name: str) -> Object:
    return await kit.until_one(client, kind, name, "default", lambda _: True)


async def until_gone(client: Client, kind: Kind, name: str) -> None:
    await kit.until_gone(client, kind, "default", field_selector=f"metadata.name={name}")


def addresses_of(slices: dict[str, Object]) -> list[str]:
    return [
        address
        for entry in slices.values()
        for endpoint in entry.get("endpoints") or ()
        for address in endpoint["addresses"]
        if (endpoint.get("conditions") or {}).get("ready")
    ]


async def test_a_service_and_its_ingress_go_where_its_pods_are(
    source: Client, c2: Client, c3: Client
) -> None:
    name = fresh("web")
    before = await source.create(kinds.SERVICES, service(name, name), "default")
    await source.create(kinds.INGRESSES, ingress(name, name), "default")
    pod = await run(source, name)
    copy = await until_there(c2, kinds.SERVICES, name)
    assert objects.spec(copy)["selector"][LABEL] == name
    annotations = objects.annotations(copy)
    assert keys.IS_DELEGATE in annotations
    assert annotations[keys.GLOBAL] == annotations["io.cilium/global-service"] == "true"
    rules = objects.spec(await until_there(c2, kinds.INGRESSES, name))["rules"]
    assert rules == ingress(name, name)["spec"]["rules"]
    for client in (source, c2):
        await kit.until(
            client,
            kinds.ENDPOINT_SLICES,
            lambda slices: addresses_of(slices) == [objects.status(pod)["podIP"]],
            namespace="default",
            label_selector=f"kubernetes.io/service-name={name}",
        )

    now = await kit.until_one(
        source, kinds.SERVICES, name, "default", lambda s: CILIUM in objects.annotations(s)
    )
    assert objects.spec(now) == objects.spec(before)
    assert not await c3.list(kinds.SERVICES, "default", field_selector=f"metadata.name={name}")

    more = [{"port": 81, "name": "more"}, {"port": 80, "name": "web"}]
    await source.patch(kinds.SERVICES, name, {"spec": {"ports": more}}, "default")
    later = await kit.until_one(
        c2, kinds.SERVICES, name, "default", lambda s: len(objects.spec(s)["ports"]) == 2
    )
    assert objects.spec(later)["clusterIP"] == objects.spec(copy)["clusterIP"]

    other = await run(source, fresh("caller"), target="c3")
    await until_there(c3, kinds.SERVICES, name)
    await source.delete(kinds.PODS, objects.name(other), "default")
    await until_gone(c3, kinds.SERVICES, name)
    await source.delete(kinds.PODS, name, "default")
    for kind in (kinds.SERVICES, kinds.INGRESSES):
        await until_gone(c2, kind, name)
        await source.delete(kind, name, "default")


async def test_what_a_service_and_its_ingress_lose_goes_from_their_copies(
    source: Client, c2: Client
) -> None:
    name = fresh("lean")
    body = service(name, name, sessionAffinity="ClientIP", loadBalancerClass="example.com/x")
    body["spec"] |= {"type": "LoadBalancer", "loadBalancerSourceRanges": ["192.0.2.0/24"]}
    body["spec"]["ports"][0]["appProtocol"] = "h2c"
    await source.create(kinds.SERVICES, body, "default")
    await source.create(kinds.INGRESSES, certified(name), "default")
    await run(source, name)
    copy = await until_there(c2, kinds.SERVICES, name)
    assert objects.spec(copy)["ports"][0]["appProtocol"] == "h2c"
    await until_there(c2, kinds.INGRESSES, name)

    lost: Object = {"loadBalancerSourceRanges": None, "ports": [{"port": 80, "targetPort": 8080}]}
    await source.patch(kinds.SERVICES, name, {"spec": lost}, "default")
    later = await kit.until_one(
        c2, kinds.SERVICES, name, "default", lambda s: "appProtocol" not in str(objects.spec(s))
    )
    assert "loadBalancerSourceRanges" not in objects.spec(later)
    given = ("clusterIP", "ipFamilies", "sessionAffinityConfig")
    assert [objects.spec(later)[k] for k in given] == [objects.spec(copy)[k] for k in given]
    assert node_ports(later) == node_ports(copy)
    await source.patch(kinds.INGRESSES, name, {"spec": {"tls": None}}, "default")
    await kit.until_one(
        c2, kinds.INGRESSES, name, "default", lambda i: "tls" not in objects.spec(i)
    )
    await source.delete(kinds.PODS, name, "default")
    for kind in (kinds.SERVICES, kinds.INGRESSES):
        await until_gone(c2, kind, name)
        await source.delete(kind, name, "default")


@pytest.fixture
async def class_of_c2(c2: Client) -> AsyncIterator[str]:
    """Yield the name of the IngressClass that is the default in c2.

    The API server of c2 fills it in when an Ingress is created there, and only then.
    """
    path = "/apis/networking.k8s.io/v1/ingressclasses"
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    body = {"metadata": {"name": "theirs", "annotations": annotations}}
    head = {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass"}
    spec = {"controller": "example.com/none"}
    await c2.request("POST", path, body={**head, **body, "spec": spec})
    yield "theirs"
    await c2.request("DELETE", f"{path}/theirs")


async def test_what_the_target_fills_in_stays_in_a_copy_that_changes(
    source: Client, c2: Client, class_of_c2: str
) -> None:
    name = fresh("classy")
    await source.create(kinds.SERVICES, service(name, name), "default")
    await source.create(kinds.INGRESSES, certified(name), "default")
    await run(source, name)
    made = await until_there(c2, kinds.INGRESSES, name)
    assert objects.spec(made)["ingressClassName"] == class_of_c2
    await source.patch(kinds.INGRESSES, name, {"spec": {"tls": None}}, "default")
    later = await kit.until_one(
        c2, kinds.INGRESSES, name, "default", lambda i: "tls" not in objects.spec(i)
    )
    assert objects.spec(later)["ingressClassName"] == class_of_c2
    for kind in (kinds.INGRESSES, kinds.SERVICES):
        await source.delete(kind, name, "default")
        await until_gone(c2, kind, name)


async def test_the_certificate_of_an_ingress_goes_with_it(
    source: Client, c2: Client, c3: Client
) -> None:
    name, other = fresh("tls"), fresh("tls")
    for secret in (name, other):
        body = {"metadata": {"name": secret}, "data": {"tls.crt": "MQ=="}}
        await source.create(kinds.SECRETS, body, "default")

    await source.create(kinds.SERVICES, service(name, name), "default")
    await source.create(kinds.INGRESSES, certified(name), "default")
    await run(source, name)
    await until_there(c2, kinds.SECRETS, name)
    await source.patch(kinds.SECRETS, name, {"data": {"tls.crt": "Mg=="}}, "default")
    await kit.until_one(
        c2, kinds.SECRETS, name, "default", lambda s: s["data"] == {"tls.crt": "Mg=="}
    )
    assert not await c3.list(kinds.SECRETS, "default", field_selector=f"metadata.name={name}")
    changed = {"spec": {"tls": [{"secretName": other}]}}
    await source.patch(kinds.INGRESSES, name, changed, "default")
    await until_there(c2, kinds.SECRETS, other)
    await until_gone(c2, kinds.SECRETS, name)
    await source.delete(kinds.PODS, name, "default")
    await until_gone(c2, kinds.SECRETS, other)
    for kind in (kinds.SERVICES, kinds.INGRESSES):
        await source.delete(kind, name, "default")


async def test_addresses_of_load_balancers_come_back_and_go(source: Client, c2: Client) -> None:
    name = fresh("balanced")
    await source.create(kinds.SERVICES, service(name, name, type="LoadBalancer"), "default")
    await source.create(kinds.INGRESSES, ingress(name, name), "default")
    await run(source, name)
    own, theirs = {"ip": "192.0.2.1", "ipMode": "VIP"}, {"ip": "192.0.2.2", "ipMode": "VIP"}
    for client, entry in ((source, own), (c2, theirs)):
        await until_there(client, kinds.SERVICES, name)
        body = {"status": {"loadBalancer": {"ingress": [entry]}}}
        await client.patch(kinds.SERVICES, name, body, "default", subresource="status")

    await until_there(c2, kinds.INGRESSES, name)
    body = {"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}}}
    await c2.patch(kinds.INGRESSES, name, body, "default", subresource="status")
    for kind, entries in (
        (kinds.SERVICES, [own, theirs | {"ipMode": "Proxy"}]),
        (kinds.INGRESSES, [{"hostname": "lb.example.com"}]),
    ):
        await kit.until_one(source, kind, name, "default", lambda s, e=entries: ingress_of(s) == e)

    await source.delete(kinds.PODS, name, "default")
    for kind, entries in ((kinds.SERVICES, [own]), (kinds.INGRESSES, [])):
        gone = await kit.until_one(
            source, kind, name, "default", lambda s, e=entries: ingress_of(s) == e
        )
        assert keys.ADDRESSES not in objects.annotations(gone)
        await source.delete(kind, name, "default")


def ingress_of(obj: Object) -> list[Object]:
    return objects.status(obj)["loadBalancer"].get("ingress") or []


async def test_a_foreign_service_is_left_alone_and_ours_says_so(source: Client, c2: Client) -> None:
    name = fresh("foreign")
    theirs = await c2.create(kinds.SERVICES, service(name, "other"), "default")
    await source.create(kinds.SERVICES, service(name, name), "default")
    await run(source, name)
    about = f"involvedObject.name={name},involvedObject.kind=Service"
    await kit.until_event(source, "default", about, "is not from this cluster")
    assert await c2.get(kinds.SERVICES, name, "default") == theirs
    await source.delete(kinds.PODS, name, "default")
    await kit.until_gone(source, kinds.PODS, "default")
    for client in (source, c2):
        await client.delete(kinds.SERVICES, name, "default")


async def test_a_node_port_that_is_taken_is_replaced_by_another(source: Client, c2: Client) -> None:
    name = fresh("port")
    other = await c2.create(
        kinds.SERVICES, service(f"{name}-taken", "nobody", type="NodePort"), "default"
    )
    taken = objects.spec(other)["ports"][0]["nodePort"]
    ports = [{"port": 80, "nodePort": taken}]
    await source.create(
        kinds.SERVICES, service(name, name, type="NodePort", ports=ports), "default"
    )
    await run(source, name)
    copy = await until_there(c2, kinds.SERVICES, name)
    assert objects.spec(copy)["ports"][0]["nodePort"] != taken
    await source.delete(kinds.SERVICES, name, "default")
    await until_gone(c2, kinds.SERVICES, name)
    await c2.delete(kinds.SERVICES, f"{name}-taken", "default")


async def test_a_service_that_has_become_headless_is_so_in_the_target(
    fleet: Fleet, source: Client, c2: Client
) -> None:
    """And one that no longer is: API servers keep the address of a Service, or the lack of one."""
    less, more = fresh("headless"), fresh("headed")
    await source.create(kinds.SERVICES, service(less, less), "default")
    await source.create(kinds.SERVICES, service(more, more, clusterIP="None"), "default")
    for name in (less, more):
        await run(source, name)
        await until_there(c2, kinds.SERVICES, name)

    fleet.run("stop", "c1", "agent", "--kill")
    for name, spec in ((less, {"clusterIP": "None"}), (more, {})):
        await source.delete(kinds.SERVICES, name, "default")
        await source.create(kinds.SERVICES, service(name, name, **spec), "default")

    fleet.run("start", "c1", "agent")
    for name, headless in ((less, True), (more, False)):
        await kit.until_one(
            c2,
            kinds.SERVICES,
            name,
            "default",
            lambda s, h=headless: (objects.spec(s)["clusterIP"] == "None") is h,
        )
        about = f"involvedObject.name={name},reason=FollowedAnew"
        await kit.until_event(source, "default", about, "recreated")
        await source.delete(kinds.SERVICES, name, "default")
        await until_gone(c2, kinds.SERVICES, name)


async def test_a_copy_changes_its_type_with_the_original(source: Client, c2: Client) -> None:
    """What the target has allocated for one type must not be in the way of another."""
    name = fresh("typed")
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    await source.create(kinds.SERVICES, service(name, name, **local), "default")
    await run(source, name)
    made = await until_there(c2, kinds.SERVICES, name)
    assert objects.spec(made)["healthCheckNodePort"]
    for change in (
        {"externalTrafficPolicy": "Cluster"},
        {"type": "NodePort"},
        {"type": "ClusterIP"},
        local,
    ):
        await source.patch(kinds.SERVICES, name, {"spec": change}, "default")
        later = await kit.until_one(
            c2,
            kinds.SERVICES,
            name,
            "default",
            lambda s, c=change: objects.spec(s).items() >= c.items(),
        )
        assert objects.uid(later) == objects.uid(made)
        assert ("healthCheckNodePort" in objects.spec(later)) is (change == local)
        is_internal = objects.spec(later)["type"] == "ClusterIP"
        assert ("nodePort" in objects.spec(later)["ports"][0]) is not is_internal

    await source.delete(kinds.SERVICES, name, "default")
    await until_gone(c2, kinds.SERVICES, name)


async def test_a_selector_that_admiralty_replaced_is_restored(source: Client) -> None:
    name = fresh("rerouted")
    body = service(name, name)
    body["spec"]["selector"] = {LABEL: name, keys.PREFIX + "tier": "db"}
    body["metadata"] |= {
        "annotations": {keys.ORIGINAL_SELECTOR: f"app={name},example.com/tier=db"},
        "finalizers": [keys.PREFIX + "default-c2", "example.com/kept"],
    }
    await source.create(kinds.SERVICES, body, "default")
    now = await kit.until_one(
        source,
        kinds.SERVICES,
        name,
        "default",
        lambda s: keys.ORIGINAL_SELECTOR not in objects.annotations(s),
    )
    assert objects.spec(now)["selector"] == {"app": name, "example.com/tier": "db"}
    assert objects.finalizers(now) == ["example.com/kept"]
    await source.patch(kinds.SERVICES, name, {"metadata": {"finalizers": []}}, "default")
    await source.delete(kinds.SERVICES, name, "default")


async def test_a_restarted_agent_leaves_services_as_they_are(
    fleet: Fleet, source: Client, c2: Client
) -> None:
    kept, unused = fresh("kept"), fresh("unused")
    for name in (kept, unused):
        await source.create(kinds.SERVICES, service(name, name), "default")
        await run(source, name)
        await until_there(c2, kinds.SERVICES, name)

    await kit.until_one(
        source, kinds.SERVICES, kept, "default", lambda s: CILIUM in objects.annotations(s)
    )
    before = [await client.get(kinds.SERVICES, kept, "default") for client in (source, c2)]
    fleet.run("stop", "c1", "agent", "--kill")
    await source.delete(kinds.SERVICES, unused, "default")
    fleet.run("start", "c1", "agent")
    await until_gone(c2, kinds.SERVICES, unused)
    assert [await client.get(kinds.SERVICES, kept, "default") for client in (source, c2)] == before
    await source.delete(kinds.SERVICES, kept, "default")
    await until_gone(c2, kinds.SERVICES, kept)
