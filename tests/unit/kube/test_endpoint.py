from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path

import pytest
import trustme
import yaml
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import computing
from tests.certificates import issue
from vnode.api.errors import ConfigError
from vnode.kube import endpoint
from vnode.kube.endpoint import Endpoint, Trust
from vnode.kube.kubeconfig import Kubeconfig

TOKEN = "s3cr3t-t0k3n"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def pair():
    authority = trustme.CA()
    leaf = authority.issue_cert("someone@example.com")
    return (
        authority.cert_pem.bytes(),
        b"".join(blob.bytes() for blob in leaf.cert_chain_pems),
        leaf.private_key_pem.bytes(),
    )


def config(*, cluster=None, user=None, context=None, **top):
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": user if user is not None else {"token": TOKEN}}],
        **top,
    }


def endpoint_of(text, context=None, *, base=Path(), **trust) -> Endpoint:
    return endpoint.from_kubeconfig(Kubeconfig.parse(text, context, base), **trust)


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


def test_a_key_with_a_password_is_refused_without_asking_for_it(pair):
    private = serialization.load_pem_private_key(pair[2], None)
    locked = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    user = {"client-certificate-data": b64(pair[1]), "client-key-data": b64(locked)}
    with pytest.raises(ConfigError, match="client-key is encrypted: use a key that needs no"):
        endpoint_of(json.dumps(config(user=user)))


def test_files_are_looked_for_beside_the_kubeconfig_only_when_trusted():
    text = json.dumps(config(cluster={"certificate-authority": "gone.crt"}))
    with pytest.raises(ConfigError, match=r"cannot read certificate-authority .*gone\.crt"):
        endpoint_of(text, trust=Trust(files=True), base=Path("/nowhere"))


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


PLUGIN = {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"}
ALLOWED = Trust(commands=frozenset({"aws"}))


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


AUTHORITY = issue("authority", ca=True).pem


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
