from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, service_tokens

TOKENS = st.fixed_dictionaries(
    {"path": st.just("t")},
    optional={"audience": st.text(max_size=3), "expirationSeconds": st.integers(600, 9999)},
)


@given(st.lists(TOKENS, min_size=1, max_size=4))
def test_who_mounts_tokens_finds_what_who_makes_them_puts_there(tokens):
    volume = {"name": "v", "projected": {"sources": [{"serviceAccountToken": t} for t in tokens]}}
    made = service_tokens.of({"volumes": [volume]})
    mapped = service_tokens.from_secret(volume, "s")["projected"]["sources"]
    found = [source["secret"]["items"][0]["key"] for source in mapped]
    assert set(found) == set(made)
    asked = {(t.get("audience", ""), t.get("expirationSeconds", 3600)) for t in tokens}
    assert set(made.values()) == asked
    assert service_tokens.USUAL not in made


def mounting(volume, account="robot"):
    """A pod that mounts a volume in the usual place."""
    mount = {"name": volume["name"], "mountPath": keys.SERVICE_ACCOUNT_MOUNT}
    containers = [{"name": "c", "volumeMounts": [mount]}]
    return {"containers": containers, "volumes": [volume], "serviceAccountName": account}


def projecting(**token):
    return {"name": "v", "projected": {"sources": [{"serviceAccountToken": token}]}}


def secret(name):
    return {"name": "v", "secret": {"secretName": name}}


@pytest.mark.parametrize(
    ("volume", "usual"),
    [
        (projecting(path="token", expirationSeconds=3607), True),
        (projecting(path="token", audience="vault"), False),
        (secret("robot-token-x7f2k"), True),
        (secret("robot.service-account-token"), True),
        (secret("executor.service-account-token"), False),
        (secret("robot-token"), False),
        ({"name": "v", "emptyDir": {}}, False),
        ({"name": "v", "projected": {"sources": [{"secret": {"name": "x"}}]}}, False),
    ],
)
def test_in_the_usual_place_only_the_token_of_the_pods_own_account_is_the_usual_one(volume, usual):
    assert service_tokens.usual_volumes(mounting(volume)) == ({"v"} if usual else set())
    assert (service_tokens.USUAL in service_tokens.of(mounting(volume))) is usual


def test_the_usual_token_elsewhere_is_one_among_others():
    spec = mounting(projecting(path="token"))
    spec["containers"][0]["volumeMounts"][0]["mountPath"] = "/elsewhere"
    assert not service_tokens.usual_volumes(spec)
    assert service_tokens.USUAL not in service_tokens.of(spec)


def test_other_volumes_are_left_as_they_are():
    volume = {"name": "v", "projected": {"sources": [{"secret": {"name": "x"}}]}}
    assert service_tokens.from_secret(volume, "s") is volume
    assert service_tokens.of({"volumes": [volume, {"name": "e", "emptyDir": {}}]}) == {}
