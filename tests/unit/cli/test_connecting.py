"""What `vnode connect` finds and keeps, or replaces."""

from __future__ import annotations

import base64
import json

import pytest

from vnode.api.objects import Object
from vnode.cli.connecting import wanted


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
    assert wanted.is_of_earlier(account(**owner), SOURCE) is earlier


@pytest.mark.parametrize(
    ("claims", "kept"),
    [
        ({"kubernetes.io": {"serviceaccount": {"name": "c1", "uid": "a"}}}, True),
        ({"kubernetes.io": {"serviceaccount": {"name": "c1", "uid": "b"}}}, False),
        ({"sub": "system:serviceaccount:default:c1"}, True),
    ],
)
def test_a_token_is_of_the_account_that_it_names_by_uid(claims: Object, kept: bool) -> None:
    assert wanted.is_of(token(**claims), account()) is kept
