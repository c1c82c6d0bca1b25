"""When credentials end, and when a Target says so."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api.objects import Object
from vnode.kube.kubeconfig import Kubeconfig
from vnode.runtime.certs import keypairs
from vnode.targets import expiry
from vnode.targets.expiry import AHEAD, CredentialExpiry, Renewal

END = datetime(2030, 1, 1, tzinfo=UTC)
TARGET: Object = {"metadata": {"name": "a", "namespace": "b"}}


def token(**claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{payload}.signature"


def kubeconfig(**user: Any) -> Kubeconfig:
    context = {"cluster": "c", "user": "u"}
    config = {
        "contexts": [{"name": "x", "context": context}],
        "clusters": [{"name": "c", "cluster": {}}],
        "users": [{"name": "u", "user": user}],
        "current-context": "x",
    }
    return Kubeconfig.parse(json.dumps(config))


def test_the_end_of_a_token_is_its_own_word() -> None:
    text = token(exp=END.timestamp(), sub="system:serviceaccount:b:c1")
    found = expiry.of_kubeconfig(kubeconfig(token=text))
    assert found == CredentialExpiry("token", END, "system:serviceaccount:b:c1")


def test_the_end_of_a_client_certificate_is_in_it() -> None:
    pair = keypairs.make_authority(END, timedelta(days=3))
    data = base64.b64encode(pair.certificate).decode()
    found = expiry.of_kubeconfig(kubeconfig(**{"client-certificate-data": data}))
    assert found is not None
    assert (found.what, found.at) == ("client certificate", keypairs.expiry(pair.x509))


@pytest.mark.parametrize(
    "found",
    [
        kubeconfig(),
        kubeconfig(token="opaque"),
        kubeconfig(token=token(sub="x")),
        kubeconfig(token=token(exp=1e300)),
        kubeconfig(**{"client-certificate-data": "!"}),
        kubeconfig(username="a"),
    ],
)
def test_what_has_no_end_to_see_has_none(found: Kubeconfig) -> None:
    assert expiry.of_kubeconfig(found) is None


@given(
    st.sampled_from(["token", "client-certificate-data"]),
    st.none() | st.integers() | st.text(max_size=50) | st.lists(st.text(max_size=5), max_size=2),
)
def test_nonsense_is_no_error(field: str, value: Any) -> None:
    assert expiry.of_kubeconfig(kubeconfig(**{field: value})) is None


@pytest.mark.parametrize(
    ("before", "status", "reason"),
    [
        (AHEAD + timedelta(seconds=1), "True", "Lasting"),
        (AHEAD, "False", "EndingSoon"),
        (timedelta(seconds=1), "False", "EndingSoon"),
        (timedelta(), "False", "Ended"),
    ],
)
def test_a_target_says_it_a_week_ahead(before: timedelta, status: str, reason: str) -> None:
    condition = expiry.condition(TARGET, CredentialExpiry("token", END), None, END - before)
    assert condition is not None
    assert (condition["status"], condition["reason"]) == (status, reason)
    assert "2030-01-01 00:00 UTC" in condition["message"]
    assert (status == "True") != ("vnode connect" in condition["message"])


@pytest.mark.parametrize(
    ("renewal", "before", "reason", "text"),
    [
        (Renewal(END - AHEAD), timedelta(hours=1), "Lasting", "vnode renews it on 2029-12-25"),
        (Renewal(None, "no right"), timedelta(days=90), "NotRenewed", "cannot renew it: no right"),
        (Renewal(END, "no right"), timedelta(hours=1), "NotRenewed", "ends on 2030-01-01"),
        (Renewal(END, "no right"), timedelta(), "Ended", "cannot renew it: no right"),
        (Renewal(END), timedelta(), "Ended", "run vnode connect again"),
    ],
)
def test_a_token_that_is_renewed_lasts_until_it_cannot_be(
    renewal: Renewal, before: timedelta, reason: str, text: str
) -> None:
    condition = expiry.condition(TARGET, CredentialExpiry("token", END), renewal, END - before)
    assert condition is not None
    assert condition["reason"] == reason
    assert condition["status"] == ("True" if reason == "Lasting" else "False")
    assert text in condition["message"]


def test_a_managed_secret_without_a_token_says_so() -> None:
    condition = expiry.condition(TARGET, None, Renewal(None, "no token"), END)
    assert condition is not None
    assert (condition["reason"], condition["message"]) == ("NotRenewed", "no token")


def test_credentials_without_an_end_are_mentioned_only_where_others_had_one() -> None:
    assert expiry.condition(TARGET, None, None, END) is None
    old = expiry.condition(TARGET, CredentialExpiry("token", END), None, END)
    after = expiry.condition({**TARGET, "status": {"conditions": [old]}}, None, None, END)
    assert after is not None
    assert (after["status"], after["reason"]) == ("True", "NoEnd")


def test_it_is_looked_at_again_when_it_turns() -> None:
    end = CredentialExpiry("token", END)
    assert expiry.seconds_until_change(None, END) is None
    assert expiry.seconds_until_change(end, END) is None
    assert expiry.seconds_until_change(end, END - timedelta(hours=1)) == 3601
    assert expiry.seconds_until_change(end, END - AHEAD - timedelta(minutes=1)) == 61
    assert expiry.seconds_until_change(end, END - timedelta(days=300)) == 43200
