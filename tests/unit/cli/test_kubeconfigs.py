"""Kubeconfigs that connect reads and makes."""

from __future__ import annotations

import base64

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vnode.api.errors import ConfigError
from vnode.cli import kubeconfigs
from vnode.cli.connect import desired
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.kube import endpoint
from vnode.kube.kubeconfig import Kubeconfig


def jwt(**claims):
    """Return an unsigned token with these claims."""
    payload = base64.urlsafe_b64encode(msgspec.json.encode(claims)).decode().rstrip("=")
    return f"header.{payload}.signature"


def test_what_is_built_is_one_that_the_agent_takes_out_of_a_secret():
    cluster = ClusterEndpoint("https://192.0.2.1:6443", None, "name")
    text = kubeconfigs.build(cluster, "secret", "team")
    made = endpoint.from_kubeconfig(Kubeconfig.parse(text, kubeconfigs.CONTEXT))
    assert (made.url, made.namespace, made.server_name) == (
        "https://192.0.2.1:6443",
        "team",
        "name",
    )
    assert kubeconfigs.token_in(text) == "secret"


def test_files_that_the_operators_kubeconfig_names_are_taken_in(tmp_path):
    (tmp_path / "ca.crt").write_bytes(b"authority")
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "East"}}],
        "clusters": [
            {
                "name": "East",
                "cluster": {"server": "https://h/", "certificate-authority": "ca.crt"},
            }
        ],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    endpoint, name = kubeconfigs.read(file)
    assert (endpoint, name) == (ClusterEndpoint("https://h", b"authority"), "East")
    built = yaml.safe_load(kubeconfigs.build(endpoint, "t", "n"))
    data = built["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(data) == b"authority"


@pytest.mark.parametrize("text", [b"", b"{", b"users: []", b"users: [{user: {token: 5}}]", b"5"])
def test_no_token_is_found_in_what_was_not_built_here(text):
    assert kubeconfigs.token_in(text) is None


@given(st.text())
def test_no_text_is_mistaken_for_a_token_with_an_end(text):
    assert kubeconfigs.lifetime(text) is None


def test_a_token_is_fresh_until_a_fifth_of_its_life_is_left():
    token = jwt(iat=1000, exp=2000)
    assert kubeconfigs.lifetime(token) == (1000, 2000)
    assert desired.is_fresh(token, now=1799)
    assert not desired.is_fresh(token, now=1801)
    assert not desired.is_fresh("", now=0)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kind-c1", "kind-c1"),
        ("gke_Project_zone", "gke-project-zone"),
        ("arn:aws:eks:eu-west-1:1:cluster/prod", "arn-aws-eks-eu-west-1-1-cluster-prod"),
        ("api.example.com:6443", "api-example-com-6443"),
    ],
)
def test_names_of_clusters_become_names_of_objects(text, name):
    assert kubeconfigs.object_name(text) == name


@given(st.text(min_size=1))
def test_every_name_is_a_dns_label_or_refused(text):
    try:
        name = kubeconfigs.object_name(text)
    except ConfigError:
        return

    assert 0 < len(name) <= 63
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert name[0] != "-" != name[-1]


@pytest.mark.parametrize(
    ("server", "local"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://localhost", True),
        ("https://[::1]:6443", True),
        ("https://127.0.3.1:6443", False),
        ("https://localhost.example.com", False),
        ("https://192.0.2.1", False),
    ],
)
def test_addresses_that_mean_the_machine_itself(server, local):
    assert ClusterEndpoint(server, None).is_local is local
