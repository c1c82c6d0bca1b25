from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.client import MemoryClient
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import Invalid

NO_NAMES = [
    "",
    ".",
    "..",
    "../../kube-system/secrets/x",
    "victim/log?container=c",
    "../pods?watch=true&x=1",
    "x?y",
    "x#y",
    "x%2Fy",
    "%2e%2e",
    "x\\y",
    "x y",
    "x\n",
    "x\r\nHost: y",
    "é",
    "\ud800",
]


def test_core_kinds_are_below_api():
    assert kinds.PODS.path("ns", "p", "log") == "/api/v1/namespaces/ns/pods/p/log"
    assert kinds.PODS.path() == "/api/v1/pods"
    assert kinds.PODS.api_version == "v1"
    assert kinds.PODS.resource == "pods"


def test_group_kinds_are_below_apis():
    base = "/apis/multicluster.admiralty.io/v1alpha1"
    assert kinds.TARGETS.path("ns") == f"{base}/namespaces/ns/targets"
    assert kinds.TARGETS.api_version == "multicluster.admiralty.io/v1alpha1"
    assert kinds.TARGETS.resource == "targets.multicluster.admiralty.io"


def test_cluster_scoped_kinds_take_no_namespace():
    assert kinds.NODES.path("ignored", "n", "status") == "/api/v1/nodes/n/status"
    assert kinds.CLUSTER_SUMMARIES.path(None, "singleton").endswith("/clustersummaries/singleton")


def test_a_name_of_rbac_stays_as_it_is():
    path = kinds.CLUSTER_ROLES.path(None, "system:kube-scheduler")
    assert path.endswith("/clusterroles/system:kube-scheduler")


@pytest.mark.parametrize("text", NO_NAMES)
def test_what_is_no_name_is_in_no_path(text: str) -> None:
    with pytest.raises(Invalid, match="cannot be the name of a Pod"):
        kinds.PODS.path("ns", text, "log")

    with pytest.raises(Invalid, match="cannot be the namespace of a Pod"):
        kinds.PODS.path(text, "web")

    with pytest.raises(Invalid, match="cannot be the subresource of a Pod"):
        kinds.PODS.path("ns", "web", text)

    if text:
        with pytest.raises(Invalid, match="cannot be the namespace of a Pod"):
            kinds.PODS.path(text)


@given(st.text(max_size=20), st.text(max_size=20))
def test_whatever_the_names_a_path_has_the_segments_of_one_object(namespace, name) -> None:
    try:
        path = kinds.PODS.path(namespace, name, "log")
    except Invalid:
        return

    parts = urlsplit(f"https://server.invalid{path}")
    assert (parts.path, parts.query, parts.fragment) == (path, "", "")
    *_, place, plural, called, last = parts.path.split("/")
    assert (plural, last) == ("pods", "log")
    assert not {place, called} & {"", ".", ".."}


_Request = Callable[[MemoryClient, str], Awaitable[object]]
_REQUESTS: dict[str, _Request] = {
    "get": lambda client, text: client.get(kinds.PODS, text, "ns"),
    "list": lambda client, text: client.list(kinds.PODS, f"{text}/.."),
    "create": lambda client, text: client.create(kinds.PODS, {}, f"{text}/.."),
    "bind": lambda client, text: client.create(
        kinds.PODS, {}, "ns", name=text, subresource="binding"
    ),
    "patch": lambda client, text: client.patch(kinds.PODS, text, {}, "ns", subresource="status"),
    "apply": lambda client, text: client.apply(
        kinds.PODS, {"metadata": {"name": text, "namespace": "ns"}}
    ),
    "replace": lambda client, text: client.replace(
        kinds.PODS, {"metadata": {"name": text, "namespace": "ns"}}
    ),
    "delete": lambda client, text: client.delete(kinds.PODS, text, "ns"),
    "discard": lambda client, text: client.discard(
        kinds.PODS, {"metadata": {"name": text, "namespace": "ns"}}
    ),
}


@pytest.mark.looptime
@pytest.mark.parametrize("verb", _REQUESTS)
@pytest.mark.parametrize("text", NO_NAMES)
async def test_no_verb_sends_a_request_for_what_is_no_name(
    verb: str, text: str, clock: Clock
) -> None:
    server = APIServer("c1", clock)
    with pytest.raises(Invalid):
        await _REQUESTS[verb](server.client(), text)

    assert not server.requests


def test_a_kind_without_a_namespace_is_its_cluster_scoped_sibling():
    assert kinds.scoped(kinds.TARGETS, "team-a") is kinds.TARGETS
    assert kinds.scoped(kinds.TARGETS, "") is kinds.CLUSTER_TARGETS
    assert kinds.CLUSTER_TARGETS.path(name="gpu").endswith("/clustertargets/gpu")
    assert kinds.CLUSTER_TARGETS.kind == "ClusterTarget"
