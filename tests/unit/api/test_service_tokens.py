"""Which tokens a pod has in its files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, service_tokens
from vnode.api.service_tokens import LIFE, SecretUse, WantedToken
from vnode.pods import token_volumes

TOKENS = st.fixed_dictionaries(
    {"path": st.just("t")},
    optional={"audience": st.text(max_size=3), "expirationSeconds": st.integers(600, 9999)},
)
ADMITTED = {"path": "token", "expirationSeconds": 3607}


def projecting(*tokens, name="v"):
    sources = [{"serviceAccountToken": token} for token in tokens]
    return {"name": name, "projected": {"sources": sources}}


def holding(name, **reference):
    return {"name": "v", "secret": {"secretName": name, **reference}}


def mounting(*volumes, path=keys.SERVICE_ACCOUNT_MOUNT, **spec):
    """Return the spec of a pod that mounts volumes in the usual place."""
    mounts = [{"name": volume["name"], "mountPath": path} for volume in volumes]
    return {"containers": [{"name": "c", "volumeMounts": mounts}], "volumes": list(volumes), **spec}


@given(st.lists(TOKENS, min_size=1, max_size=4))
def test_who_mounts_tokens_finds_what_who_makes_them_puts_there(tokens):
    spec = {"volumes": [projecting(*tokens)]}
    made = service_tokens.of(spec)
    token_volumes.replace(spec, "s", ("api", "6443"))
    sources = spec["volumes"][0]["projected"]["sources"]
    assert {source["secret"]["items"][0]["key"] for source in sources} == set(made)
    asked = {(t.get("audience", ""), t.get("expirationSeconds", LIFE)) for t in tokens}
    assert {token[:2] for token in made.values()} == {
        (audience, LIFE if seconds == 3607 else seconds) for audience, seconds in asked
    }


def test_a_token_of_admission_lives_no_longer_than_one_of_a_user():
    """API servers give one of 3607 s a year."""
    assert service_tokens.of({"volumes": [projecting(ADMITTED)]}) == {
        "token": WantedToken("", LIFE)
    }


def test_a_secret_is_a_token_only_if_the_caller_says_so():
    projected = {"name": "p", "projected": {"sources": [{"secret": {"name": "b"}}]}}
    spec = {"volumes": [holding("a"), projected, holding("mine")]}
    assert service_tokens.of(spec) == {}
    found = service_tokens.of(spec, {"a", "b"})
    assert {(token.secret, token.audience) for token in found.values()} == {("a", ""), ("b", "")}
    assert len(found) == 2


def test_no_token_has_the_key_of_another():
    wanted = [WantedToken("", LIFE), WantedToken("a", LIFE), WantedToken("", 600)]
    wanted += [service_tokens.of_secret(name) for name in ("a", "b")]
    assert len({token.key for token in wanted}) == len(wanted)


KUBE = projecting(ADMITTED, name="kube-api-access-x7f2k")


def named_alike(*tokens):
    """Return a user's volume whose name is like that of admission's."""
    return projecting(*tokens, name=KUBE["name"])


OTHER_FILE = {**KUBE, "projected": {"sources": [{"serviceAccountToken": ADMITTED}, {"secret": {}}]}}


@pytest.mark.parametrize(
    ("spec", "admitted"),
    [
        (mounting(KUBE), True),
        (mounting(KUBE, automountServiceAccountToken=True), True),
        (mounting(KUBE, automountServiceAccountToken=False), False),
        (mounting(KUBE, path="/elsewhere"), False),
        (mounting(projecting(ADMITTED)), False),
        (mounting(holding("robot-token-x7f2k")), False),
        (mounting({"name": "kube-api-access-x", "emptyDir": {}}), False),
        (mounting(named_alike({"path": "token", "expirationSeconds": 600})), False),
        (mounting(named_alike({"path": "token"})), False),
        (mounting(named_alike({**ADMITTED, "audience": "vault"})), False),
        (mounting(named_alike(ADMITTED, {"path": "vault", "audience": "vault"})), False),
        (mounting(OTHER_FILE), False),
        ({**mounting(KUBE), "initContainers": [{"name": "i"}]}, False),
        ({**mounting(KUBE), "ephemeralContainers": [{"name": "e"}]}, True),
    ],
)
def test_what_admission_has_mounted_is_in_every_container_under_its_name(spec, admitted):
    assert service_tokens.admitted_volumes(spec) == ({KUBE["name"]} if admitted else set())


def test_secrets_in_variables_and_below_a_sub_path_do_not_change_while_a_container_runs():
    env = [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}}]
    env_from = [{"secretRef": {"name": "c", "optional": True}}, {"configMapRef": {"name": "m"}}]
    main = {"name": "c", "env": [{"name": "X"}, *env], "envFrom": env_from}
    below = {"name": "i", "volumeMounts": [{"name": "v", "mountPath": "/t", "subPath": "token"}]}
    volume = holding("a", optional=True)
    for field in ("initContainers", "ephemeralContainers"):
        spec = {"containers": [main], field: [below], "volumes": [volume]}
        assert list(service_tokens.secret_uses(spec)) == [
            SecretUse("a", optional=True, renewed=False),
            SecretUse("c", optional=True, renewed=False),
            SecretUse("b", renewed=False),
        ]

    assert list(service_tokens.secret_uses(mounting(holding("a")))) == [SecretUse("a")]
