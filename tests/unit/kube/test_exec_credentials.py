"""What an exec plugin prints is a credential, or an error that tells why it is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api.errors import ConfigError, Unreachable
from vnode.kube import exec_credentials
from vnode.kube.exec_credentials import ExecCredential, ExecSpec

V1 = "client.authentication.k8s.io/v1"


def printed(status, version=V1, kind="ExecCredential") -> bytes:
    return json.dumps({"apiVersion": version, "kind": kind, "status": status}).encode()


def test_a_token_and_a_certificate_are_read_with_their_end():
    text = printed({"token": "abc", "expirationTimestamp": "2026-01-02T03:04:05Z"})
    found = exec_credentials.parse(text, V1, "it")
    assert found == ExecCredential("abc", ends=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    text = printed({"clientCertificateData": "CERT", "clientKeyData": "KEY"})
    assert exec_credentials.parse(text, V1, "it") == ExecCredential("", "CERT", "KEY")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 10_000, "no JSON"),
        (b"[]", "another kind"),
        (printed({"token": "a"}, kind="Secret"), "another kind"),
        (printed({"token": "a"}, "client.authentication.k8s.io/v1beta1"), "apiVersion is not"),
        (printed(None), "no status"),
        (printed({}), "neither token"),
        (printed({"token": ""}), "neither token"),
        (printed({"token": 7}), "must be strings"),
        (printed({"token": "a\nX-Header: b"}), "line breaks"),
        (printed({"token": "ä"}), "beyond ASCII"),
        (printed({"clientCertificateData": "CERT"}), "belong together"),
        (printed({"token": "a", "expirationTimestamp": "tomorrow"}), "no time"),
        (printed({"token": "a", "expirationTimestamp": 5}), "no time"),
    ],
)
def test_rubbish_is_refused_with_the_reason(text, why):
    with pytest.raises(Unreachable, match=why):
        exec_credentials.parse(text, V1, "it")


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_bytes_that_are_no_credential_are_an_error(text):
    with pytest.raises(Unreachable, match="'it' prints no ExecCredential"):
        exec_credentials.parse(text, V1, "it")


@given(
    st.dictionaries(st.sampled_from(["token", "clientKeyData", "expirationTimestamp"]), st.text())
)
def test_an_error_never_quotes_the_token(status):
    status = {**status, "token": f"SECRET-WORD {status.get('token', '')}"}
    with pytest.raises(Unreachable) as raised:
        exec_credentials.parse(printed(status), V1, "it")

    assert "SECRET-WORD" not in str(raised.value)


def test_a_plugin_sees_the_cluster_only_if_it_asks_for_it():
    cluster = {
        "server": "https://c2",
        "certificate-authority": "/etc/hostname",
        "certificate-authority-data": "Q0E=",
        "extensions": [{"name": exec_credentials.EXTENSION, "extension": {"clusterName": "c2"}}],
    }
    plugin = {"command": "it", "apiVersion": V1, "provideClusterInfo": True}
    spec = exec_credentials.spec_of(plugin, cluster, {"PATH": "/bin"})
    info = msgspec.json.decode(spec.execution().environment["KUBERNETES_EXEC_INFO"])
    assert info["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://c2",
            "certificate-authority-data": "Q0E=",
            "config": {"clusterName": "c2"},
        },
    }
    spec = exec_credentials.spec_of({**plugin, "provideClusterInfo": False}, cluster, {})
    info = msgspec.json.decode(spec.execution().environment["KUBERNETES_EXEC_INFO"])
    assert info == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        ({}, "no command"),
        ({"command": "it"}, "needs an apiVersion"),
        ({"command": "it", "apiVersion": "v1"}, "needs an apiVersion"),
        ({"command": "it", "apiVersion": V1, "args": "x"}, "args"),
        ({"command": "it", "apiVersion": V1, "args": [1]}, "args"),
        ({"command": "it", "apiVersion": V1, "env": {"A": "b"}}, "env"),
        ({"command": "it", "apiVersion": V1, "interactiveMode": "Always"}, "no terminal"),
    ],
)
def test_a_plugin_that_cannot_be_run_is_refused(plugin, why):
    with pytest.raises(ConfigError, match=why):
        exec_credentials.spec_of(plugin, {}, {})


def test_a_plugin_gets_what_it_needs_of_the_agents_variables():
    environ = {"PATH": "/bin", "AWS_ROLE_ARN": "a", "https_proxy": "p", "DATABASE_PASSWORD": "x"}
    assert set(exec_credentials.inherited(environ=environ)) == set(environ) - {"DATABASE_PASSWORD"}
    assert exec_credentials.inherited(everything=True, environ=environ) == environ


def test_credentials_are_not_shown():
    assert "SECRET" not in repr(ExecCredential("SECRET", "CERT", "SECRET"))
    assert "SECRET" not in repr(ExecSpec("it", environment={"A": "SECRET"}))
