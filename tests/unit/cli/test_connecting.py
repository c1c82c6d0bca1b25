"""What `vnode connect` finds and keeps, or replaces."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from vnode.api import keys, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli import identity
from vnode.cli.access import Access
from vnode.cli.connect import connect, desired, grants, lookup
from vnode.cli.connect.connect import ConnectOptions, Side
from vnode.cli.connect.connector import Connector
from vnode.cli.connect.desired import DesiredConnection
from vnode.cli.kubeconfigs import ClusterEndpoint


def account(**owner: str) -> Object:
    return {"metadata": {"uid": "a", "ownerReferences": [{"controller": True, **owner}]}}


def token(**claims: object) -> str:
    return "x." + base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + ".x"


SOURCE = {"kind": "Source", "metadata": {"name": "c1", "uid": "now"}}


@pytest.mark.parametrize(
    ("owner", "earlier"),
    [
        ({"kind": "Source", "name": "c1", "uid": "now"}, False),
        ({"kind": "Source", "name": "c1", "uid": "before"}, True),
        ({"kind": "ClusterSource", "name": "c1", "uid": "another"}, False),
        ({"kind": "Source", "name": "c2", "uid": "another"}, False),
        ({}, False),
    ],
)
def test_only_the_account_of_an_earlier_source_of_that_name_is_replaced(
    owner: dict[str, str], earlier: bool
) -> None:
    """Seen in a target that was uninstalled and connected again at once: it was collected then,
    and the token with it."""
    assert desired.is_of_earlier(account(**owner), SOURCE) is earlier


@pytest.mark.parametrize(
    ("claims", "kept"),
    [
        ({"kubernetes.io": {"serviceaccount": {"name": "c1", "uid": "a"}}}, True),
        ({"kubernetes.io": {"serviceaccount": {"name": "c1", "uid": "b"}}}, False),
        ({"sub": "system:serviceaccount:default:c1"}, True),
    ],
)
def test_a_token_is_of_the_account_that_it_names_by_uid(claims: Object, kept: bool) -> None:
    assert desired.is_of(token(**claims), account()) is kept


def connection(**more: Any) -> DesiredConnection:
    endpoint = ClusterEndpoint("https://c3", None)
    return DesiredConnection("team", "team", "gpu", "c1", endpoint, 3600, **more)


def connector(**more: Any) -> Connector:
    nobody: Any = None
    return Connector(nobody, nobody, connection(**more), lambda _line: None)


@pytest.mark.parametrize(
    ("recorded", "uid", "confirmed"),
    [("", "b", ""), ("b", "b", ""), ("a", "", ""), ("a", "b", "b")],
)
def test_only_another_cluster_than_the_recorded_one_is_confirmed(
    recorded: str, uid: str, confirmed: str
) -> None:
    target = {"status": {"clusterUID": recorded}}
    assert connector(confirmed=True).confirmation(target, uid) == confirmed


def test_another_cluster_in_the_place_of_a_target_is_refused_with_the_ways_out() -> None:
    with pytest.raises(ConfigError, match=r"another --name.*disconnect.*--confirm-cluster"):
        connector().confirmation({"status": {"clusterUID": "a"}}, "b")


def test_the_target_names_the_cluster_that_was_confirmed_and_no_other_ever_after() -> None:
    confirmed = desired.target_object(connection(), "b")
    assert confirmed["metadata"]["annotations"] == {keys.CONFIRM_CLUSTER: "b"}
    assert "annotations" not in desired.target_object(connection())["metadata"]


def options(**more: Any) -> ConnectOptions:
    given: dict[str, Any] = {
        "namespace": None,
        "cluster_wide": True,
        "name": None,
        "cluster_name": None,
        "server": None,
        "token_lifetime": 86400,
        "agent_namespace": "vnode",
        "enable_namespace": False,
        "confirm_cluster": False,
        "renew": True,
    }
    return ConnectOptions(**{**given, **more})


def wide(**more: Any) -> DesiredConnection:
    endpoint = ClusterEndpoint("https://c3", None)
    return DesiredConnection("", "vnode", "gpu", "c1", endpoint, 3600, **more)


LABELLED = {"matchLabels": {"vnode.dev/cluster-sources": "enabled"}}


@pytest.mark.parametrize(
    ("given", "selector"),
    [
        ({}, LABELLED),
        ({"target_namespaces": "pool=gpu"}, {"matchLabels": {"pool": "gpu"}}),
        ({"target_namespaces": ""}, {}),
        ({"grant_all_namespaces": True}, None),
    ],
)
def test_a_new_cluster_source_holds_where_the_user_says(given: Any, selector: Any) -> None:
    assert connect.selector_of(options(**given)) == selector
    made = desired.source_object(wide(), "uid", selector)
    assert objects.spec(made).get("namespaceSelector") == selector


def test_a_user_is_told_how_to_wait_for_the_connection() -> None:
    flags = " --kubeconfig c1.kubeconfig"
    told = connect.what_next(wide(), flags)
    assert "wait --for=condition=Ready clustertarget/gpu\n" in told
    assert told.endswith(f"vnode doctor{flags}")
    told = connect.what_next(connection(), flags)
    assert re.search(rf"kubectl{flags} wait .* target/\S+ --namespace \S+$", told, re.MULTILINE)


def test_labels_that_select_nothing_well_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^--target-namespaces: "):
        connect.selector_of(options(target_namespaces="a in ("))

    with pytest.raises(ConfigError, match="Gt is not for labels"):
        connect.selector_of(options(target_namespaces="a>3"))


@pytest.mark.parametrize("present", [{"spec": {}}, {"spec": {"namespaceSelector": {}}}])
def test_a_cluster_source_that_exists_keeps_what_it_gives_unless_the_user_says(
    present: Object,
) -> None:
    kept = objects.spec(present).get("namespaceSelector")
    assert wide(selector=LABELLED).selector_of(present) == kept
    chosen = wide(selector=LABELLED, keeps_selector=False)
    assert chosen.selector_of(present) == LABELLED
    assert wide(selector=LABELLED).selector_of(None) == LABELLED
    assert connection(selector=LABELLED).selector_of(None) is None  # a Source has none


def test_a_user_is_told_what_a_cluster_source_gives() -> None:
    assert "as good as cluster-admin" in grants.told(None)
    assert "kubectl label namespace NAMESPACE vnode.dev/cluster-sources=enabled" in grants.told(
        LABELLED
    )
    assert "all namespaces but those of Kubernetes" in grants.told({})
    assert "spec.namespaceSelector matches" in grants.told({"matchLabels": {"pool": "gpu"}})


def test_commands_that_are_printed_can_be_pasted() -> None:
    side = Side("source", Access(Path("my clusters/eu.yaml"), "arn:aws:eks:eu:1:cluster/a"))
    assert side.flags == " --kubeconfig 'my clusters/eu.yaml' --context arn:aws:eks:eu:1:cluster/a"
    assert connect.how_to_take_part("team", side.flags).endswith(f"=enabled{side.flags}")


@pytest.mark.parametrize("name", ["Prod", "prod_eu"])
def test_a_cluster_whose_name_no_source_can_have_is_told_the_way_out(name: str) -> None:
    """The names of clusters are values of labels, which may have more than names of objects."""
    assert identity.check_name(name) == name
    with pytest.raises(ConfigError, match="pass --cluster-name"):
        lookup.check_source_name(name)

    lookup.check_source_name("prod-eu.example")
