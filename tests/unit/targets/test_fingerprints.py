"""Which changes of a Secret take a new connection, another address, or only new credentials."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unsigned_tokens import jwt
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli import kubeconfigs
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets import fingerprints
from vnode.targets.fingerprints import Fingerprint
from vnode.targets.model import SecretReference, TargetSpec

SPEC = TargetSpec(TargetKey("team", "c2"), SecretReference("team", "s", "config", ""), "")
HOLDER = {"iss": "https://c2", "sub": "system:serviceaccount:team:c1"}


def fingerprint(spec: TargetSpec, text: bytes) -> Fingerprint:
    return fingerprints.of_kubeconfig(spec, Kubeconfig.parse(text))


def kubeconfig(token: str, server: str = "https://c2") -> bytes:
    return kubeconfigs.build(ClusterEndpoint(server, b"authority"), token, "team")


def test_the_fingerprint_stays_while_nothing_changes() -> None:
    text = kubeconfig("word")
    assert fingerprint(SPEC, text) == fingerprint(replace(SPEC), text)
    assert fingerprints.of_self(SPEC) == fingerprints.of_self(replace(SPEC))


@pytest.mark.parametrize(
    "spec",
    [
        replace(SPEC, excluded_labels="^a"),
        replace(SPEC, secret=SecretReference("team", "s", "config", "other")),
        replace(SPEC, secret=None),
    ],
)
def test_all_that_a_connection_is_made_of_takes_a_new_one(spec: TargetSpec) -> None:
    text = kubeconfig("word")
    assert fingerprint(spec, text).connection != fingerprint(SPEC, text).connection
    assert fingerprints.of_self(spec).connection != fingerprints.of_self(SPEC).connection


@pytest.mark.parametrize("as_json", [False, True])
def test_a_new_token_of_the_same_account_takes_no_new_connection(as_json: bool) -> None:
    before, after = (kubeconfig(jwt(**HOLDER, exp=end)) for end in (1, 2))
    if as_json:
        before, after = (json.dumps(kubeconfigs_of(text)).encode() for text in (before, after))

    old, new = fingerprint(SPEC, before), fingerprint(SPEC, after)
    assert old[:2] == new[:2]
    assert old.token != new.token


@pytest.mark.parametrize(
    "text",
    [
        kubeconfig(jwt(**{**HOLDER, "sub": "system:serviceaccount:team:other"})),
        kubeconfig(jwt(**{**HOLDER, "iss": "https://other"})),
        kubeconfig(jwt(sub=HOLDER["sub"])),
        kubeconfig("opaque"),
    ],
)
def test_another_holder_takes_a_new_connection(text: bytes) -> None:
    before = fingerprint(SPEC, kubeconfig(jwt(**HOLDER)))
    assert fingerprint(SPEC, text).connection != before.connection


@pytest.mark.parametrize(
    "endpoint",
    [
        ClusterEndpoint("https://c3", b"authority"),
        ClusterEndpoint("https://c2", b"another"),
        ClusterEndpoint("https://c2", b"authority", "c2.internal"),
    ],
)
def test_another_server_is_told_from_another_user(endpoint: ClusterEndpoint) -> None:
    token = jwt(**HOLDER)
    before = fingerprint(SPEC, kubeconfig(token))
    after = fingerprint(SPEC, kubeconfigs.build(endpoint, token, "team"))
    assert before.connection == after.connection
    assert before.server != after.server


def test_a_token_that_does_not_say_whose_it_is_takes_a_new_connection() -> None:
    before, after = (fingerprint(SPEC, kubeconfig(token)) for token in ("opaque", "other"))
    assert before.connection != after.connection


@given(st.binary(max_size=200))
def test_any_token_has_a_fingerprint(payload: bytes) -> None:
    text = kubeconfig(f"x.{base64.urlsafe_b64encode(payload).decode()}.x")
    assert fingerprint(SPEC, text) == fingerprint(SPEC, text)


def kubeconfigs_of(text: bytes) -> Object:
    """Return the document of a kubeconfig in YAML."""
    found: Object = yaml.safe_load(text)
    return found
