"""When the token of a managed Secret is renewed, and what may take its place."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unsigned_tokens import jwt
from vnode.api import keys
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets import token_renewal
from vnode.targets.token_renewal import ManagedToken

ISSUED = datetime(2026, 5, 1, tzinfo=UTC)
ACCOUNT = ("team", "c1")
USER = "system:serviceaccount:team:c1"


def claims(life: float = 86400, **more: object) -> str:
    begins = ISSUED.timestamp()
    return jwt(**{"sub": USER, "iat": begins, "exp": begins + life, **more})


def stored(token: str) -> Kubeconfig:
    server = ClusterEndpoint("https://c2", None)
    return Kubeconfig.parse(kubeconfigs.build(server, token, "team"))


def secret(lifetime: str = "24h") -> Object:
    return {"metadata": {"annotations": {keys.RENEW_TOKEN: lifetime}}}


def managed(token: str, lifetime: str = "24h") -> ManagedToken:
    found = token_renewal.managed(secret(lifetime), stored(token))
    assert found is not None
    return found


@given(st.floats(0, 1), st.integers(600, 10**9))
def test_a_token_is_renewed_at_three_quarters_to_four_fifths_of_its_granted_life(
    chance: float, life: int
) -> None:
    share = (managed(claims(life)).renew_at(chance) - ISSUED) / timedelta(seconds=life)
    assert 0.7499 < share < 0.8001


def test_what_counts_is_the_life_that_was_granted_and_not_what_was_asked_for() -> None:
    token = managed(claims(3600), "365d")
    assert (token.wanted, token.renew_at(0)) == (365 * 86400, ISSUED + timedelta(minutes=48))


def test_tokens_that_were_made_together_are_not_renewed_together() -> None:
    moments = {token_renewal.chance(claims(jti=number)) for number in range(100)}
    assert len(moments) == 100
    assert token_renewal.chance("a") == token_renewal.chance("a")


def test_a_secret_without_the_annotation_is_nobodys_to_renew() -> None:
    assert token_renewal.managed({"metadata": {}}, stored(claims())) is None
    assert token_renewal.plan({"metadata": {}}, stored("nonsense")) is None


@pytest.mark.parametrize(
    ("token", "lifetime", "cure"),
    [
        (claims(), "yes", "vnode.dev/renew-token 'yes' must be at least 10m"),
        (claims(), "9m", "must be at least 10m"),
        (claims(), "9" * 5000 + "d", "must be at least 10m, e.g. 24h"),
        (claims(sub="jane"), "24h", "no token of a service account: renew it yourself"),
        ("opaque", "24h", "no token of a service account"),
        (claims(exp=None), "24h", "does not say how long it lives: put one that ends"),
        (claims(iat="soon"), "24h", "does not say how long it lives"),
        (claims(-1), "24h", "does not say how long it lives"),
    ],
)
def test_what_cannot_be_renewed_says_what_to_do(token: str, lifetime: str, cure: str) -> None:
    with pytest.raises(ConfigError, match=cure):
        managed(token, lifetime)

    plan = token_renewal.plan(secret(lifetime), stored(token))
    assert plan is not None
    assert plan.at is None
    assert cure[:20] in plan.failure


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("24h", 86400), ("365d", 31536000)])
def test_lifetimes(text: str, seconds: int) -> None:
    assert token_renewal.parse_lifetime(text, "--token-lifetime") == seconds


@pytest.mark.parametrize("text", ["", "5m", "-1h", "1y", "1.5h", "600", "9" * 5000 + "d"])
def test_lifetimes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--token-lifetime"):
        token_renewal.parse_lifetime(text, "--token-lifetime")


def test_a_token_that_another_cluster_gets_too_is_not_renewed() -> None:
    config = yaml.safe_load(stored(claims()).text)
    config["contexts"].append({"name": "b", "context": {"cluster": "evil", "user": "target"}})
    with pytest.raises(ConfigError, match="context 'b' of the kubeconfig sends the same user's"):
        token_renewal.managed(secret(), Kubeconfig.parse(json.dumps(config)))


def test_a_token_that_is_there_twice_is_not_replaced() -> None:
    token = claims()
    text = stored(token).text + f"extra: {token}\n".encode()
    with pytest.raises(ConfigError, match="must have the token once"):
        token_renewal.managed(secret(), Kubeconfig.parse(text))


def test_nothing_but_the_token_changes() -> None:
    old, new = claims(), claims(jti=2)
    assert token_renewal.replaced(stored(old), old, new) == stored(new).text


@pytest.mark.parametrize(
    ("granted", "problem"),
    [
        (claims(sub="system:serviceaccount:team:admin"), "another account"),
        (claims(600), "ended already"),
        (claims(exp=None), "no end"),
        ("x" * 20_000, "no token has"),
        (f"{claims(jti=2)}\nname: evil", "no token has"),
        ("-\u00e9", "no token has"),
    ],
)
def test_not_whatever_a_server_sends_takes_the_place_of_a_token(granted: str, problem: str) -> None:
    token = managed(claims())
    now = ISSUED + timedelta(hours=20)
    with pytest.raises(ConfigError, match=problem):
        token_renewal.check_granted(token, granted, now)

    token_renewal.check_granted(token, claims(iat=now.timestamp(), exp=now.timestamp() + 1), now)


def test_attempts_become_rarer_and_more_frequent_again_towards_the_end() -> None:
    year = managed(claims(365 * 86400))
    assert [year.retry_in(n, ISSUED) for n in (1, 2, 3, 6, 99)] == [10, 20, 40, 300, 300]
    short = managed(claims(600))
    assert short.retry_in(9, ISSUED + timedelta(seconds=520)) == 20
    assert short.retry_in(9, ISSUED + timedelta(seconds=599)) == 10
    assert short.retry_in(99, ISSUED + timedelta(seconds=601)) == 300


def test_an_outage_is_told_in_the_last_tenth_of_the_life_and_what_lasts_at_once() -> None:
    token = managed(claims(1000))
    early, late = (ISSUED + timedelta(seconds=seconds) for seconds in (850, 900))
    assert token.is_worth_reporting(ConfigError("may not"), early)
    assert not token.is_worth_reporting(Unreachable("away"), early)
    assert token.is_worth_reporting(Unreachable("away"), late)


@given(st.text(max_size=300))
def test_no_token_is_too_odd_to_be_judged(token: str) -> None:
    plan = token_renewal.plan(secret(), stored(token))
    assert plan is not None
    assert plan.failure
