"""How a profile's cluster is reached is up to the operator; a profile gives server and CA."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.agent.config import AgentConfig
from vnode.api import strict_decoding as decoding
from vnode.api.errors import ConfigError, VnodeError
from vnode.kube.exec_credentials import EXTENSION, ExecCredential
from vnode.targets.profiles import refusals, resolving
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.profiles.refusals import ProfileRefused, ProfileUnavailable

ENVIRONMENT = {"PATH": "/bin"}


def config(**fields: Any) -> InventoryConfig:
    provider = {
        "name": "reader",
        "execConfig": {"command": "/plugins/reader", "args": ["-v"], "provideClusterInfo": True},
        **fields,
    }
    inventory = {"namespaces": ["fleet"], "providers": [provider]}
    found = decoding.decode(AgentConfig, {"inventory": inventory}, "test")
    found.check()
    return found.inventory


def profile(*providers: Any, older: Any = None, namespace: str = "fleet") -> dict[str, Any]:
    return {
        "metadata": {"namespace": namespace, "name": "c2"},
        "spec": {"clusterManager": {"name": "tests"}},
        "status": {"accessProviders": list(providers), "credentialProviders": older or []},
    }


def access(name: str = "reader", **cluster: Any) -> dict[str, Any]:
    return {"name": name, "cluster": {"server": "https://c2.example:6443", **cluster}}


def extension(name: str, value: Any) -> dict[str, Any]:
    return {"name": name, "extension": value}


def resolve(of: dict[str, Any], by: InventoryConfig | None = None) -> resolving.ProfileAccess:
    return resolving.resolve(of, by or config(), ENVIRONMENT)


def test_the_first_provider_that_the_operator_knows_is_taken():
    both = InventoryConfig(("*",), (config(name="b").providers[0], config(name="a").providers[0]))
    found = resolve(profile(access("a"), access("b", server="https://b.example")), both)
    assert found.provider == "b"
    assert found.cluster["server"] == "https://b.example"


def test_the_older_list_counts_and_the_newer_one_wins():
    old = access(server="https://old.example")
    assert resolve(profile(older=[old])).cluster["server"] == "https://old.example"
    assert resolve(profile(access(), older=[old])).cluster["server"] == "https://c2.example:6443"


@pytest.mark.parametrize(
    ("made", "reason", "text"),
    [
        (profile(), refusals.NO_ACCESS, "cluster manager .tests. has to write"),
        (profile({"name": "reader"}), refusals.NO_ACCESS, "no cluster.server"),
        (profile(access("google")), refusals.UNKNOWN_PROVIDER, "by 'google', and .* 'reader'"),
        (profile(access(), namespace="team"), refusals.NOT_BELIEVED, "does not list team"),
        (profile(access(server="http://c2")), refusals.REFUSED, "https://"),
        (profile(access(server="https://a@b")), refusals.REFUSED, "not of the form"),
        (profile(access(server="https://c2/?x=")), refusals.REFUSED, "not of the form"),
        (profile(access(**{"certificate-authority": "/x"})), refusals.REFUSED, "names a file"),
        (profile(access(**{"certificate-authority-data": "?"})), refusals.REFUSED, "not base64"),
        (profile(access(**{"certificate-authority-data": "aGk="})), refusals.REFUSED, "no PEM"),
        (profile(access(**{"insecure-skip-tls-verify": "yes"})), refusals.REFUSED, "any server"),
        (profile(access(**{"proxy-url": "socks5://p"})), refusals.REFUSED, "without a proxy"),
        (profile(access(**{"tls-server-name": "a b"})), refusals.REFUSED, "name of a host"),
    ],
)
def test_what_cannot_or_must_not_be_used_is_refused_with_the_reason(made, reason, text):
    with pytest.raises(ProfileRefused, match=text) as raised:
        resolve(made)

    assert raised.value.reason == reason
    assert "kubeconfig" not in str(raised.value)


@pytest.mark.parametrize(
    ("server", "allowed"),
    [
        ("https://api.c2.example:6443", True),
        ("https://API.C2.EXAMPLE", True),
        ("https://c2.example", False),
        ("https://evil.example/api.c2.example", False),
        ("https://10.0.0.1", True),
    ],
)
def test_credentials_go_to_the_servers_that_the_operator_lists(server, allowed):
    by = config(servers=["*.c2.example", "10.0.0.1"])
    if allowed:
        assert resolve(profile(access(server=server)), by).cluster["server"] == server
    else:
        with pytest.raises(ProfileRefused, match="does not list that host"):
            resolve(profile(access(server=server)), by)


def test_arguments_and_variables_of_a_profile_count_only_if_the_operator_says_so():
    more = [
        extension(resolving.ARGS, ["--tenant", "a"]),
        extension(resolving.VARIABLES, {"TENANT": "a", "REGION": "x"}),
    ]
    made = profile(access(extensions=more))
    assert resolve(made).plugin.args == ("-v",)
    assert resolve(made).plugin.environment == ENVIRONMENT
    own = {"command": "/plugins/reader", "env": [{"name": "REGION", "value": "own"}]}
    policies = {
        "profileSourcedCLIArgsPolicy": "Append",
        "profileSourcedCLIArgs": ["--tenant"],
        "profileSourcedEnvVars": ["TENANT", "REGION"],
        "execConfig": own,
    }
    appended = config(**policies, profileSourcedEnvVarsPolicy="AppendIfNotExists")
    found = resolve(made, appended).plugin
    assert found.args == ("--tenant", "a")
    assert found.environment == {**ENVIRONMENT, "TENANT": "a", "REGION": "own"}
    replaced = config(**policies, profileSourcedEnvVarsPolicy="Replace")
    assert resolve(made, replaced).plugin.environment["REGION"] == "x"
    assert resolve(profile(access()), appended).plugin.args == (), "none of another profile"


@pytest.mark.parametrize(
    "value", [{"LD_PRELOAD": "/x"}, {"PATH": "/x"}, {"A": 1}, {"A=B": "c"}, ["A"], {"": "x"}]
)
def test_variables_that_decide_what_runs_or_are_none_are_refused(value):
    made = profile(access(extensions=[extension(resolving.VARIABLES, value)]))
    with pytest.raises(ProfileRefused, match="additional-envs"):
        resolve(made, config(profileSourcedEnvVarsPolicy="Replace", profileSourcedEnvVars=["A"]))


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_ENDPOINT_URL_STS", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CA_BUNDLE", "AWS_PROFILE"),
        *("AZURE_AUTHORITY_HOST", "AZURE_FEDERATED_TOKEN_FILE", "SSL_CERT_FILE", "HTTPS_PROXY"),
        *("OPENSSL_CONF", "GIT_SSH_COMMAND", "KUBERNETES_SERVICE_HOST", "tenant", "TENANT "),
    ],
)
def test_a_profile_sets_no_variable_that_its_provider_does_not_list(name):
    made = profile(access(extensions=[extension(resolving.VARIABLES, {"TENANT": "a", name: "b"})]))
    by = config(profileSourcedEnvVarsPolicy="Replace", profileSourcedEnvVars=["TENANT"])
    cure = rf"sets {name}, which is not listed in the agent's configuration \(profileSourcedEnvVars"
    with pytest.raises(ProfileRefused, match=cure):
        resolve(made, by)


def test_an_operator_may_list_what_only_leads_elsewhere_and_nothing_that_runs_code():
    given = {"AWS_ENDPOINT_URL_STS": "https://sts.example"}
    made = profile(access(extensions=[extension(resolving.VARIABLES, given)]))
    by = config(profileSourcedEnvVarsPolicy="Replace", profileSourcedEnvVars=list(given))
    by.check()
    assert resolve(made, by).plugin.environment.items() >= given.items()
    with pytest.raises(ConfigError, match="profileSourcedEnvVars lists LD_PRELOAD, which decides"):
        config(profileSourcedEnvVars=["LD_PRELOAD"]).check()


@pytest.mark.parametrize("value", [{"a": "b"}, [1], "x", ["a\0b"], ["a"] * 65, ["a" * 5000]])
def test_arguments_that_are_none_are_refused(value):
    made = profile(access(extensions=[extension(resolving.ARGS, value)]))
    with pytest.raises(ProfileRefused, match="additional-args"):
        resolve(made, config(profileSourcedCLIArgsPolicy="Append"))


@pytest.mark.parametrize(
    "words",
    [
        ["--federated-token-file=/var/run/secrets/token", "--authority-host=https://evil.example"],
        ["--tenant", "a", "--endpoint-url", "https://evil.example"],
        ["--tenant=a", "--ten", "b"],
        ["--tenant"],
        ["--tenant", "--authority-host=https://evil.example"],
        ["--tenant", "a", "other-command"],
        ["--"],
        [""],
    ],
)
def test_a_profile_gives_no_argument_that_its_provider_does_not_list(words):
    """A cloud's plugin has options for whose token it sends where, as it has variables."""
    made = profile(access(extensions=[extension(resolving.ARGS, words)]))
    by = config(profileSourcedCLIArgsPolicy="Append", profileSourcedCLIArgs=["--tenant"])
    with pytest.raises(ProfileRefused, match="additional-args"):
        resolve(made, by)


def test_an_option_that_is_listed_has_its_value_in_either_form():
    by = config(profileSourcedCLIArgsPolicy="Append", profileSourcedCLIArgs=["--tenant", "-t"])
    for words in (["--tenant=a"], ["--tenant", "a", "-t", "b"], ["--tenant="], []):
        made = profile(access(extensions=[extension(resolving.ARGS, words)]))
        assert resolve(made, by).plugin.args == ("-v", *words)

    for odd in ("tenant", "--tenant=a", "--", ""):
        with pytest.raises(ConfigError, match="profileSourcedCLIArgs has"):
            config(profileSourcedCLIArgs=[odd])


def test_the_configuration_for_the_plugin_is_shown_to_it_and_names_no_command():
    hostile = {"clusterName": "c2", "command": "/bin/sh", "args": ["-c", "id"]}
    made = profile(access(extensions=[extension(EXTENSION, hostile)]))
    found = resolve(made).plugin
    assert found.command == "/plugins/reader"
    assert found.cluster is not None
    assert found.cluster["config"] == hostile
    huge = profile(access(extensions=[extension(EXTENSION, {"a": "x" * 20_000})]))
    with pytest.raises(ProfileRefused, match="more than 16384"):
        resolve(huge)


def test_equal_profiles_give_equal_accesses():
    made = profile(access(extensions=[extension(EXTENSION, {"clusterName": "c2"})]))
    changed = json.loads(json.dumps(made))
    changed["status"]["conditions"] = [{"type": "ControlPlaneHealthy", "status": "False"}]
    changed["metadata"]["labels"] = {"a": "b"}
    assert resolve(made) == resolve(changed)


async def test_the_endpoint_has_the_token_or_says_that_a_certificate_is_none():
    found = resolving.endpoint_of(resolve(profile(access())), ExecCredential("word"))
    assert found.url == "https://c2.example:6443"
    assert await found.authorization() == "Bearer word"
    with pytest.raises(ProfileUnavailable, match="gave credentials of no use") as raised:
        resolving.endpoint_of(resolve(profile(access())), ExecCredential("", "SECRET", "SECRET"))

    assert "SECRET" not in str(raised.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    _JSON,
    st.sampled_from(["server", "certificate-authority-data", "tls-server-name", "extensions"]),
)
def test_any_profile_is_resolved_or_refused(value, field):
    by = config(profileSourcedCLIArgsPolicy="Append", profileSourcedEnvVarsPolicy="Replace")
    cluster = {"server": "https://c2.example", field: value}
    for made in (
        profile({"name": "reader", "cluster": cluster}),
        profile({"name": "reader", "cluster": value}),
        profile(value),
    ):
        try:
            found = resolve(made, by)
        except VnodeError:
            continue

        assert found.plugin.command == "/plugins/reader"
        assert str(found.cluster["server"]).startswith("https://")


@pytest.mark.parametrize(
    ("inventory", "text"),
    [
        ({"providers": [{"name": "a", "execConfig": {"command": "x"}}]}, "inventory.namespaces"),
        (
            {"namespaces": ["f"], "providers": [{"name": "", "execConfig": {"command": "x"}}]},
            "without a name",
        ),
        (
            {"namespaces": ["f"], "providers": [{"name": "a", "execConfig": {"command": ""}}]},
            "command is empty",
        ),
        (
            {"namespaces": ["f"], "providers": [{"name": "a", "execConfig": {"command": "x"}}] * 2},
            "two providers of one name",
        ),
        (
            {
                "namespaces": ["f"],
                "providers": [
                    {"name": "a", "execConfig": {"command": "x"}, "servers": ["https://x"]}
                ],
            },
            "without https://",
        ),
        ({"providers": [{"name": "a", "execConfig": {"command": "x", "shell": True}}]}, "shell"),
        (
            {
                "providers": [
                    {
                        "name": "a",
                        "execConfig": {"command": "x"},
                        "profileSourcedCLIArgsPolicy": "Replace",
                    }
                ]
            },
            "profileSourcedCLIArgsPolicy",
        ),
    ],
)
def test_a_configuration_that_cannot_work_is_an_error_with_the_cure(inventory, text):
    with pytest.raises(ConfigError, match=text):
        decoding.decode(AgentConfig, {"inventory": inventory}, "test").check()
