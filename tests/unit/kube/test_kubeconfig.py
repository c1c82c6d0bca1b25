"""What a kubeconfig says is parsed once, and errors of its fields can be told of others, too."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api.errors import ConfigError
from vnode.kube import endpoint
from vnode.kube.kubeconfig import FieldError, Kubeconfig

TOKEN = "s3cr3t-t0k3n"
NO_PEM = base64.b64encode(b"no PEM").decode()
TWO = {
    "current-context": "a",
    "contexts": [
        {"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
        {"name": "b", "context": {"cluster": "c"}},
        {"name": "broken", "context": 5},
        "broken",
    ],
    "clusters": [{"name": "c", "cluster": {"server": "https://c2"}}],
    "users": [{"name": "u", "user": {"token": TOKEN}}],
}


def test_the_current_context_is_chosen_unless_one_is_named():
    text = json.dumps(TWO)
    current, named = Kubeconfig.parse(text), Kubeconfig.parse(text, "b")
    assert (current.namespace, current.token) == ("team", TOKEN)
    assert (named.namespace, named.token, named.user) == ("default", "", {})
    assert current.cluster == named.cluster == {"server": "https://c2"}
    assert [name for name, _context in current.contexts] == ["a", "b", None, None]
    assert current.text == text.encode()


def test_no_secret_is_shown_where_a_kubeconfig_is_logged():
    assert TOKEN not in repr(Kubeconfig.parse(json.dumps(TWO)))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_kubeconfig_or_a_config_error(data):
    with pytest.raises(ConfigError):
        Kubeconfig.parse(data)


@pytest.mark.parametrize("broken", [f"token: {TOKEN}: {{", f"users: [{TOKEN}", f"a: b\n{TOKEN}"])
def test_what_cannot_be_parsed_is_not_quoted(broken):
    with pytest.raises(ConfigError) as caught:
        Kubeconfig.parse(broken)

    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "user", "problem"),
    [
        ({}, {}, "cluster needs a server"),
        ({"server": "https://a b"}, {}, "server is not of the form"),
        ({"certificate-authority-data": NO_PEM}, {}, "certificate-authority is no PEM"),
        ({}, {"token": "a\nb"}, "token has a line break"),
    ],
)
def test_what_is_wrong_with_a_cluster_or_user_is_said_in_words_for_every_owner(
    cluster, user, problem
):
    given = cluster if "needs" in problem else {"server": "https://c2", **cluster}
    with pytest.raises(FieldError) as caught:
        endpoint.of(given, user)

    assert caught.value.problem.startswith(problem)
    assert str(caught.value) == f"the kubeconfig's {caught.value.problem}"
