"""What `vnode connect` finds and keeps, or replaces."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from vnode.api import keys
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli.connect import desired
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
