from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, service_tokens

TOKENS = st.fixed_dictionaries(
    {"path": st.just("t")},
    optional={"audience": st.text(max_size=3), "expirationSeconds": st.integers(600, 9999)},
)


@given(st.lists(TOKENS, min_size=1, max_size=4))
def test_who_mounts_tokens_finds_what_who_makes_them_puts_there(tokens):
    volume = {"name": "v", "projected": {"sources": [{"serviceAccountToken": t} for t in tokens]}}
    made = service_tokens.of({"volumes": [volume]})
    mapped = service_tokens.from_secret(volume, "s")["projected"]["sources"]
    found = [source["secret"]["items"][0]["key"] for source in mapped]
    assert set(found) == set(made)
    asked = {(t.get("audience", ""), t.get("expirationSeconds", 3600)) for t in tokens}
    assert set(made.values()) == asked
    assert service_tokens.USUAL not in made


def test_the_volume_in_the_usual_place_is_the_usual_token_whatever_it_projects():
    mount = {"name": "v", "mountPath": keys.SERVICE_ACCOUNT_MOUNT}
    sources = [{"serviceAccountToken": {"path": "token", "audience": "other"}}]
    spec = {
        "containers": [{"volumeMounts": [mount]}],
        "volumes": [{"name": "v", "projected": {"sources": sources}}],
    }
    assert list(service_tokens.of(spec)) == [service_tokens.USUAL]


def test_other_volumes_are_left_as_they_are():
    volume = {"name": "v", "projected": {"sources": [{"secret": {"name": "x"}}]}}
    assert service_tokens.from_secret(volume, "s") is volume
    assert service_tokens.of({"volumes": [volume, {"name": "e", "emptyDir": {}}]}) == {}
