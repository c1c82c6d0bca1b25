from __future__ import annotations

import copy
import functools
import operator
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, renaming
from vnode.api.identity import Identity
from vnode.following import copies, services, write_back_patches
from vnode.following.pod_index import PodIndex

US = Identity("c1", "uid-1")
VALUES = st.recursive(
    st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
)


def relabel(labels, kept):
    return renaming.renamed(labels, renaming.kept_labels(kept))


def addresses(original, copies, exists, *, is_service=False):
    return write_back_patches.addresses(original, copies, exists, is_service=is_service)


def service(annotations=None, status=None, **spec):
    return {
        "metadata": {"name": "s", "namespace": "ns", "uid": "u", "annotations": annotations or {}},
        "spec": {"selector": {"app": "x", "example.com/tier": "db"}, **spec},
        "status": {"loadBalancer": {"ingress": status or []}},
    }


def test_a_copy_selects_delegates_and_has_addresses_of_its_own():
    original = service(clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"], ipFamilies=["IPv4"])
    copy = services.service(original, US, relabel)
    assert copy["spec"] == {"selector": {keys.PREFIX + "app": "x", keys.PREFIX + "tier": "db"}}
    assert keys.IS_DELEGATE in copy["metadata"]["annotations"]
    assert "clusterIP" in original["spec"]


def test_marks_of_the_mesh_do_not_make_a_copy_differ_once_the_original_has_them():
    marks = dict.fromkeys((keys.GLOBAL, *keys.CILIUM_GLOBAL), "true")
    before, after = (
        services.service(service(annotations), US, relabel) for annotations in ({}, marks)
    )
    assert copies.marks(before) == copies.marks(after)


def test_a_headless_service_stays_headless():
    copy = services.service(service(clusterIP="None", clusterIPs=["None"]), US, relabel)
    assert copy["spec"]["clusterIP"] == "None"
    assert "clusterIPs" not in copy["spec"]


def test_labels_that_keep_their_names_are_selected_by_them():
    copy = services.service(service({keys.NO_PREFIX_LABEL_REGEXP: "^app="}), US, relabel)
    assert copy["spec"]["selector"] == {"app": "x", keys.PREFIX + "tier": "db"}


def test_what_may_not_follow_selects_nothing():
    assert services.selector(service({keys.IS_DELEGATE: ""})) == {}
    assert services.selector(service({keys.NO_FOLLOW: ""})) == {}
    assert services.selector(service(type="ExternalName")) == {}
    assert services.selector({"spec": {"selector": None}}) == {}


def test_an_ingress_leads_to_the_services_that_it_names():
    backend = {"service": {"name": "web"}}
    rules = [{"host": "no-http"}, {"http": {"paths": [{"backend": backend}]}}]
    spec = {"rules": rules, "defaultBackend": {"service": {"name": "rest"}}}
    assert sorted(services.backends({"spec": spec})) == ["rest", "web"]
    assert list(services.backends({"spec": {"defaultBackend": {"resource": {}}}})) == []
    kept = {"metadata": {"annotations": {keys.NO_FOLLOW: ""}}, "spec": spec}
    assert list(services.backends(kept)) == []


def test_an_ingress_names_its_certificates_unless_it_stays_at_home():
    tls = [{"secretName": "one"}, {"hosts": ["no.example.com"]}, {"secretName": "two"}]
    ingress = {"metadata": {"namespace": "ns"}, "spec": {"tls": tls}}
    assert [ref.name for ref in services.certificates(ingress)] == ["one", "two"]
    for note in (keys.NO_FOLLOW, keys.IS_DELEGATE):
        kept = {**ingress, "metadata": {"namespace": "ns", "annotations": {note: ""}}}
        assert list(services.certificates(kept)) == []


def test_node_ports_can_be_left_to_the_target():
    assert services.without_node_ports(service(ports=[{"port": 1}])) is None
    free = services.without_node_ports(service(ports=[{"port": 1, "nodePort": 30000}]))
    assert free is not None
    assert free["spec"]["ports"] == [{"port": 1}]


@given(VALUES)
def test_everything_holds_itself(value):
    assert copies.holds(value, value)


def test_what_a_server_fills_in_does_not_matter_and_the_rest_does():
    present = {"ports": [{"port": 1, "protocol": "TCP"}], "type": "ClusterIP"}
    assert copies.holds(present, {"ports": [{"port": 1}]})
    assert not copies.holds(present, {"ports": [{"port": 2}]})
    assert not copies.holds(present, {"ports": []})
    assert not copies.holds(present, {"other": 1})
    assert not copies.holds({"selector": ["a"]}, {"selector": {"a": "b"}})


PORT = {"port": 80, "protocol": "TCP", "appProtocol": "h2c", "nodePort": 30000}


def present(original):
    """Return the copy of a Service as a server has it that has filled in what it likes to."""
    made = services.service(original, US, relabel)
    ports = [{**port, "nodePort": 31000} for port in made["spec"]["ports"]]
    return {**made, "spec": {**made["spec"], "ports": ports, "clusterIP": "10.0.0.2", "new": True}}


def without(original, *path):
    """Return the object without the field at that path."""
    changed = copy.deepcopy(original)
    *way, last = path
    holder = functools.reduce(operator.getitem, way, changed)
    del holder[last]
    return changed


def test_what_the_target_fills_in_is_no_difference():
    original = service(ports=[PORT])
    wanted = services.service(original, US, relabel)
    assert services.is_up_to_date(present(original), wanted)
    other_port = service(ports=[{**PORT, "nodePort": 30001}])
    assert services.is_up_to_date(present(original), services.service(other_port, US, relabel))


@pytest.mark.parametrize(
    "path",
    [
        ("spec", "sessionAffinity"),
        ("spec", "selector", "example.com/tier"),
        ("spec", "ports", 0, "appProtocol"),
    ],
)
def test_what_the_original_loses_is_a_difference(path):
    original = service(ports=[PORT], sessionAffinity="ClientIP")
    wanted = services.service(without(original, *path), US, relabel)
    assert not services.is_up_to_date(present(original), wanted)


def test_an_ingress_that_loses_its_certificates_differs():
    before = {"metadata": {"name": "i"}, "spec": {"rules": [], "tls": [{"secretName": "s"}]}}
    made = services.ingress(before, US)
    assert services.is_up_to_date(made, services.ingress(before, US))
    assert not services.is_up_to_date(made, services.ingress(without(before, "spec", "tls"), US))


def test_what_somebody_changes_of_a_copy_is_a_difference():
    original = service(type="ClusterIP", ports=[PORT])
    changed = present(original)
    changed["spec"]["type"] = "NodePort"
    assert not services.is_up_to_date(changed, services.service(original, US, relabel))


def test_addresses_come_and_go_with_their_targets():
    own, a, b = ({"ip": f"192.0.2.{n}"} for n in (1, 2, 3))
    patch = addresses(
        service(status=[own]),
        {"n2": service(status=[b]), "n1": service(status=[a])},
        bool,
        is_service=False,
    )
    assert patch["status"]["loadBalancer"]["ingress"] == [own, a, b]
    brought = service(patch["metadata"]["annotations"], status=[own, a, b])
    again = {"n2": service(status=[b]), "n1": service(status=[a])}
    assert addresses(brought, again, bool) == {}
    gone = addresses(brought, {"n1": None, "n2": service(status=[b])}, bool)
    assert gone["status"]["loadBalancer"]["ingress"] == [own, b]


def test_addresses_of_a_target_that_cannot_be_seen_stay_while_it_exists():
    entry = {"hostname": "lb"}
    patch = addresses(service(), {"n1": service(status=[entry])}, bool)
    brought = service(patch["metadata"]["annotations"], status=[entry])
    assert addresses(brought, {}, lambda _node: True) == {}
    gone = addresses(brought, {}, lambda _node: False)
    assert gone["status"]["loadBalancer"]["ingress"] is None
    assert gone["metadata"]["annotations"] == {keys.ADDRESSES: None}


def test_a_target_cannot_flood_a_status_nor_smuggle_fields_into_it():
    entries = [{"ip": f"192.0.2.{n}", "odd": "x"} for n in range(99)]
    patch = addresses(service(), {"n1": service(status=entries)}, bool)
    written = patch["status"]["loadBalancer"]["ingress"]
    assert written == [{"ip": f"192.0.2.{n}"} for n in range(16)]


@pytest.mark.parametrize("note", ["{", '{"a":[{"b":' + '{"c":' * 10_000], ids=["cut", "deep"])
def test_a_note_that_somebody_spoilt_is_no_obstacle(note):
    spoilt = service({keys.ADDRESSES: note}, status=[{"ip": "192.0.2.1"}])
    assert addresses(spoilt, {}, bool) == {}


def test_a_selector_is_restored_from_what_admiralty_noted():
    rerouted = service({keys.ORIGINAL_SELECTOR: "app=x,example.com/tier=db"})
    rerouted["spec"]["selector"] = {keys.PREFIX + "app": "x", keys.PREFIX + "tier": "db"}
    rerouted["metadata"]["finalizers"] = [keys.PREFIX + "c2", "kept"]
    patch = write_back_patches.restoration(rerouted)
    assert patch["spec"]["selector"] == {
        "app": "x",
        "example.com/tier": "db",
        keys.PREFIX + "app": None,
        keys.PREFIX + "tier": None,
    }
    assert patch["metadata"]["finalizers"] == ["kept"]
    assert write_back_patches.restoration(service()) == {}


def test_a_service_is_marked_once():
    marks = write_back_patches.global_marks(service())["metadata"]["annotations"]
    assert write_back_patches.global_marks(service(marks)) == {}


NODES = st.sampled_from(["", "n1", "n2"])
MOVES = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2", "3"]), NODES, st.booleans())
)


@given(MOVES)
def test_a_population_counts_right(moves):
    population, present = PodIndex(), {}
    for namespace, name, node, stays in moves:
        metadata = {"namespace": namespace, "name": name, "labels": {"app": name}}
        pod = {"metadata": metadata, "spec": {"nodeName": node} if node else {}}
        old = present.pop((namespace, name), None)
        if stays:
            present[namespace, name] = pod

        population.on_pod(old, pod if stays else None)

    for namespace in ("a", "b"):
        pods = [pod for (where, _name), pod in present.items() if where == namespace]
        nodes = [pod["spec"]["nodeName"] for pod in pods if pod["spec"]]
        assert population.nodes(namespace) == Counter(nodes)
        assert (namespace in population.namespaces()) == bool(pods)
        for name in "123":
            assert population.has(namespace, {"app": name}) == ((namespace, name) in present)

        assert not population.has(namespace, {})


def test_the_nodes_of_the_source_do_not_take_over_an_address_that_a_target_names():
    entry = {"ip": "192.0.2.1", "ipMode": "VIP"}
    patch = addresses(service(), {"n1": service(status=[entry])}, bool, is_service=True)
    assert patch["status"]["loadBalancer"]["ingress"] == [{"ip": "192.0.2.1", "ipMode": "Proxy"}]
