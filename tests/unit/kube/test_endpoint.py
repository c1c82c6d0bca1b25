"""What becomes of a kubeconfig, or of a pod's own account: an address with credentials."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest
import yaml

from tests.unit.kube.kubeconfigs import TOKEN, b64, config, endpoint_of, pair_of
from vnode.api.errors import ConfigError
from vnode.kube import endpoint
from vnode.kube.endpoint import Trust


@pytest.fixture(scope="module")
def pair():
    return pair_of()


async def test_a_plain_kubeconfig_gives_address_namespace_and_token():
    made = endpoint_of(yaml.safe_dump(config(context={"namespace": "team"})))
    assert made.url == "https://10.0.0.1:6443"
    assert made.namespace == "team"
    assert await made.authorization() == f"Bearer {TOKEN}"


async def test_json_is_read_as_well_as_yaml():
    assert endpoint_of(json.dumps(config())).url == "https://10.0.0.1:6443"


async def test_a_named_context_wins_over_the_current_one():
    both = config()
    both["contexts"].append({"name": "other", "context": {"cluster": "d"}})
    both["clusters"].append({"name": "d", "cluster": {"server": "https://other/"}})
    made = endpoint_of(json.dumps(both), "other")
    assert made.url == "https://other"
    assert await made.authorization() is None


async def test_a_password_becomes_basic_authorization():
    made = endpoint_of(json.dumps(config(user={"username": "me", "password": "pw"})))
    assert await made.authorization() == f"Basic {b64(b'me:pw')}"


async def test_certificates_are_read_inline(pair):
    authority, certificate, key = pair
    made = endpoint_of(
        json.dumps(
            config(
                cluster={"certificate-authority-data": b64(authority), "tls-server-name": "api"},
                user={"client-certificate-data": b64(certificate), "client-key-data": b64(key)},
            )
        )
    )
    assert made.server_name == "api"
    assert made.ssl is not None
    assert made.ssl.get_ca_certs()


async def test_who_trusts_the_same_authority_shares_a_context_unless_it_holds_a_key(pair):
    authority, certificate, key = pair
    cluster = {"certificate-authority-data": b64(authority)}
    owner = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    plain, again, keyed = (
        endpoint_of(json.dumps(config(cluster=cluster, user=user))).ssl
        for user in ({"token": "a"}, {"token": "b"}, owner)
    )
    trusting = {**cluster, "insecure-skip-tls-verify": True}
    careless = endpoint_of(json.dumps(config(cluster=trusting, user={}))).ssl
    assert plain is again
    assert len({id(plain), id(keyed), id(careless)}) == 3


async def test_the_operators_own_kubeconfig_may_name_files(tmp_path, pair):
    (tmp_path / "ca.crt").write_bytes(pair[0])
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    path = tmp_path / "config"
    path.write_text(
        json.dumps(config(cluster={"certificate-authority": "ca.crt"}, user={"tokenFile": "token"}))
    )
    made = endpoint.from_kubeconfig_file(path)
    assert await made.authorization() == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("{", r"neither YAML nor JSON: .* in line \d+"),
        ("\x00", "neither YAML nor JSON"),
        ("", "not a mapping"),
        ("- a", "not a mapping .*, as kubectl config view --flatten --minify --raw prints it"),
        ("{}", "no current-context: set one"),
        (json.dumps(config(**{"current-context": "gone"})), "no context named 'gone'; it has 'it'"),
        (json.dumps(config(contexts=3)), "no context named 'it'; it has none"),
        (json.dumps(config(context={"cluster": "gone"})), "no cluster named 'gone'"),
        (json.dumps(config(context={"user": "gone"})), "no user named 'gone'"),
        (json.dumps(config(cluster={"server": None})), "server that starts with https://"),
        (json.dumps(config(cluster={"server": "10.0.0.1"})), "server that starts with https://"),
        (
            json.dumps(config(cluster={"certificate-authority-data": "%%"})),
            "certificate-authority-data is not base64",
        ),
        (
            json.dumps(config(cluster={"certificate-authority-data": b64(b"no PEM")})),
            "certificate-authority is no PEM certificate",
        ),
        (
            json.dumps(config(cluster={"certificate-authority": "/etc/ca.crt"})),
            r"inline \(kubectl config view --flatten --minify --raw\)",
        ),
        (json.dumps(config(user={"tokenFile": "/etc/token"})), "inline"),
        (
            json.dumps(config(user={"client-certificate-data": b64(b"x")})),
            "needs both client-certificate and client-key",
        ),
        (
            json.dumps(
                config(user={"client-certificate-data": b64(b"x"), "client-key-data": b64(b"y")})
            ),
            "not a PEM pair",
        ),
        (
            json.dumps(config(user={"exec": {"command": "/bin/sh"}})),
            r"exec plugin '/bin/sh'.*\(execCommands\)",
        ),
        (json.dumps(config(user={"exec": "/bin/sh"})), "execCommands"),
    ],
)
def test_bad_input_is_refused_with_its_cure(text, cure):
    with pytest.raises(ConfigError, match=cure):
        endpoint_of(text)


@pytest.mark.parametrize(
    "server",
    [
        *("https://host", "https://10.0.0.1:6443", "https://[::1]:6443", "https://[fe80::1%eth0]"),
        *("https://rancher.example.com/k8s/clusters/c-m-1", "https://host/a%20b", "http://x_y:80"),
    ],
)
def test_a_server_with_a_path_is_used_as_it_stands(server):
    assert endpoint_of(json.dumps(config(cluster={"server": server}))).url == server


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read kubeconfig .*gone"):
        endpoint.from_kubeconfig_file(tmp_path / "gone")


def test_in_a_cluster_an_authority_without_key_identifiers_will_do(tmp_path, pair, monkeypatch):
    """Since Python 3.13 the default refuses those, which clusters have."""
    for name, content in (("ca.crt", pair[0]), ("namespace", b"vnode"), ("token", b"t")):
        (tmp_path / name).write_bytes(content)

    monkeypatch.setattr(endpoint, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    there = endpoint.in_cluster()
    assert there.namespace == "vnode"
    assert there.authority == pair[0]
    assert there.ssl is not None
    assert not there.ssl.verify_flags & ssl.VERIFY_X509_STRICT


def test_outside_a_cluster_the_cure_is_named(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match="--kubeconfig"):
        endpoint.in_cluster()


NO_NAMES = [
    5,
    ["x"],
    {"a": 1},
    True,
    ".foo",
    "a..b",
    "a\0b",
    "x" * 64,
    "a b",
    "." * 3,
    "ü",
    "a.b:1",
]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_for_tls_must_be_one(name):
    with pytest.raises(ConfigError, match=r"tls-server-name is not .* write an IP address, or a"):
        endpoint_of(json.dumps(config(cluster={"tls-server-name": name})))


@pytest.mark.parametrize(
    "name", ["api", "kubernetes.default.svc", "a_b.example.", "10.0.0.1", "::1"]
)
def test_names_for_tls_that_kubectl_takes(name):
    made = endpoint_of(json.dumps(config(cluster={"tls-server-name": name})))
    assert made.server_name == name


@pytest.mark.parametrize("name", ["", None])
def test_no_name_for_tls(name):
    made = endpoint_of(json.dumps(config(cluster={"tls-server-name": name})))
    assert made.server_name is None


@pytest.mark.parametrize(
    "host", ["a..b", ".a", "x" * 64, f"a.{'x' * 64}.b", ".".join(["x" * 60] * 5)]
)
def test_a_host_must_be_one(host):
    with pytest.raises(ConfigError, match="host that cannot be one: write an IP address, or a DNS"):
        endpoint_of(json.dumps(config(cluster={"server": f"https://{host}:6443"})))


def test_files_are_looked_for_beside_the_kubeconfig_only_when_trusted():
    text = json.dumps(config(cluster={"certificate-authority": "gone.crt"}))
    with pytest.raises(ConfigError, match=r"cannot read certificate-authority .*gone\.crt"):
        endpoint_of(text, trust=Trust(files=True), base=Path("/nowhere"))
