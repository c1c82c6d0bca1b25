"""A kubeconfig that a tenant wrote runs nothing, reads no file, and costs little."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import computing
from tests.certificates import issue
from tests.unit.kube.kubeconfigs import TOKEN, b64, config, endpoint_of, pair_of
from vnode.api.errors import ConfigError
from vnode.kube import endpoint
from vnode.kube.endpoint import Trust
from vnode.kube.kubeconfig import Kubeconfig

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)
PATHS = [
    ("current-context",),
    ("contexts",),
    ("contexts", 0),
    ("contexts", 0, "context"),
    ("contexts", 0, "context", "cluster"),
    ("contexts", 0, "context", "user"),
    ("contexts", 0, "context", "namespace"),
    ("clusters", 0),
    ("clusters", 0, "cluster"),
    ("clusters", 0, "cluster", "server"),
    ("clusters", 0, "cluster", "tls-server-name"),
    ("clusters", 0, "cluster", "certificate-authority"),
    ("clusters", 0, "cluster", "certificate-authority-data"),
    ("users", 0, "user"),
    ("users", 0, "user", "token"),
    ("users", 0, "user", "tokenFile"),
    ("users", 0, "user", "exec"),
    ("users", 0, "user", "username"),
    ("users", 0, "user", "client-certificate-data"),
    ("users", 0, "user", "client-key-data"),
]
PLUGIN = {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"}
ALLOWED = Trust(commands=frozenset({"aws"}))
AUTHORITY = issue("authority", ca=True).pem


@pytest.mark.parametrize(
    "server",
    [
        *("https://internal/secret?x=", "https://internal/secret#", "https://internal?"),
        *(f"https://me:{TOKEN}@host", "https://me@host:6443", "https://a\\@b"),
        *("https://host/a b", "https://host/\r\nX: y", "https://höst", "https://host/ä"),
        *("https://", "https://host:65536", "https://host:x", "https://[::1", "https://[1:2]"),
    ],
)
def test_a_server_with_more_than_host_port_and_path_is_refused(server):
    """What is put behind `?` is no path: any address could be read in an API server's place."""
    with pytest.raises(ConfigError, match="not of the form https://HOST:PORT/PATH") as caught:
        endpoint_of(json.dumps(config(cluster={"server": server})))

    assert TOKEN not in str(caught.value)


@settings(max_examples=300)
@given(st.sampled_from(PATHS), json_values)
def test_nonsense_anywhere_is_a_config_error_or_works_and_tells_no_secret(path, nonsense):
    text = config()
    place = text
    for step in path[:-1]:
        place = place[step]

    place[path[-1]] = nonsense
    message = ""
    try:
        endpoint_of(json.dumps(text))
    except ConfigError as error:
        message = str(error)

    assert TOKEN not in message


def test_a_key_with_a_password_is_refused_without_asking_for_it():
    _authority, certificate, key = pair_of()
    private = serialization.load_pem_private_key(key, None)
    locked = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    user = {"client-certificate-data": b64(certificate), "client-key-data": b64(locked)}
    with pytest.raises(ConfigError, match="client-key is encrypted: use a key that needs no"):
        endpoint_of(json.dumps(config(user=user)))


@pytest.mark.parametrize(
    "user",
    [
        {"auth-provider": {"name": "gcp", "config": {"cmd-path": "touch", "cmd-args": "/x"}}},
        {"exec": {"command": "touch", "args": ["/x"]}},
        {"tokenFile": "/var/run/secrets/token"},
        {"token": "a\nb"},
    ],
)
def test_a_kubeconfig_from_a_secret_runs_nothing_and_reads_no_file(user):
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": "https://example.com"}}],
        "users": [{"name": "it", "user": user}],
    }
    with pytest.raises(ConfigError):
        endpoint_of(json.dumps(config))


def with_plugin(*variables: str) -> str:
    env = [{"name": name, "value": "x"} for name in variables]
    return json.dumps(config(user={"exec": {**PLUGIN, "env": env}}))


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "LD_PRELOAD",
        "PYTHONPATH",
        "pythonstartup",
        "BASH_ENV",
        "HOME",
        "KUBECONFIG",
        "AWS_CONFIG_FILE",
        "OPENSSL_MODULES",
        "GIT_SSH_COMMAND",
        "PAGER",
    ],
)
def test_a_variable_that_decides_what_code_runs_is_refused(name):
    with pytest.raises(ConfigError, match=f"sets {name} for its exec plugin"):
        endpoint_of(with_plugin("AWS_PROFILE", name), trust=ALLOWED)

    assert endpoint_of(with_plugin(name), trust=endpoint.OPERATOR)


def test_a_variable_that_chooses_an_account_is_none_of_those():
    assert endpoint_of(with_plugin("AWS_PROFILE", "AWS_REGION"), trust=ALLOWED)


def test_a_kubeconfig_of_a_target_sets_the_variables_that_are_listed():
    trust = Trust(commands=frozenset({"aws"}), variables=frozenset({"AWS_PROFILE"}))
    assert endpoint_of(with_plugin("AWS_PROFILE"), trust=trust)
    for name in ("AWS_REGION", "AWS_ENDPOINT_URL", "SSL_CERT_FILE", "aws_profile", ""):
        with pytest.raises(ConfigError, match=rf"sets {name} for .* \(namespacedExecVariables\)"):
            endpoint_of(with_plugin("AWS_PROFILE", name), trust=trust)


@pytest.mark.parametrize("env", ["PATH", [1], [None], [{"value": "x"}], {"name": "PATH"}])
def test_an_environment_that_is_none_is_refused(env):
    text = json.dumps(config(user={"exec": {**PLUGIN, "env": env}}))
    with pytest.raises(ConfigError, match="no list of names and values"):
        endpoint_of(text, trust=ALLOWED)


@pytest.mark.parametrize("place", ["cluster", "oidc"])
def test_a_bundle_of_thousands_of_authorities_is_refused_before_it_costs_anything(
    place: str,
) -> None:
    def parsed(bundle: bytes) -> Kubeconfig:
        if place == "cluster":
            return Kubeconfig.parse(
                json.dumps(config(cluster={"certificate-authority-data": b64(bundle)}))
            )

        settings = {"id-token": "t", "idp-certificate-authority-data": b64(bundle)}
        provider = {"name": "oidc", "config": settings}
        return Kubeconfig.parse(json.dumps(config(user={"auth-provider": provider})))

    for count, wrong in (
        (1300, "bytes, and may have 65536"),
        (33, "33 certificates, and may have"),
    ):
        asked = parsed(AUTHORITY * count)
        with computing.within(0.05), pytest.raises(ConfigError, match=wrong):
            endpoint.from_kubeconfig(asked)

    assert endpoint.from_kubeconfig(parsed(AUTHORITY * 32)).ssl


@pytest.mark.parametrize(
    ("field", "value"),
    [("as", "x"), ("as-uid", "1"), ("as-groups", ["g"]), ("as-user-extra", {"scopes": ["a"]})],
)
def test_a_user_that_is_to_be_impersonated_is_refused(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"user has {field}, and vnode does not impersonate"):
        endpoint.from_kubeconfig(
            Kubeconfig.parse(json.dumps(config(user={"token": "t", field: value})))
        )
