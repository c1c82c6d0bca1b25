"""What the parts of following hear of candidates in targets."""

from __future__ import annotations

import pytest

from tests.permitted import all_namespaces
from vnode.api import keys, kinds
from vnode.api.identity import Identity
from vnode.following import config
from vnode.following.following import Following
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime

US = Identity("c1", "uid-1")
MAP = Key("n1", Ref(kinds.CONFIG_MAPS, "ns", "m"))


def pod(uid):
    spec = {"volumes": [{"name": "v", "configMap": {"name": "m"}}]}
    return {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": spec}


def chaperon(uid):
    labels, annotations = (
        {keys.PARENT_UID: uid},
        {keys.PARENT_NAME: "p", keys.PARENT_NAMESPACE: "ns"},
    )
    return {"metadata": {"name": f"p-{uid}", "labels": labels, "annotations": annotations}}


class Link:
    """A target that says of chaperons what the test does, and has none to be seen."""

    def __init__(self):
        self.node_name, self.chaperons, self.is_self = "n1", self, False

    def subscribe(self, handler):
        self.say = handler

    def candidate(self, _key, _uid):
        return None

    def is_candidate(self, chaperon, pod_key, uid):
        return True


@pytest.fixture
def following(clock):
    return Following(
        *(None, Links(), US, config.FollowingConfig()),
        relabel=None,
        target_exists=None,
        enabled_namespaces=all_namespaces(),
        complete=lambda _node: True,
        events=None,
        clock=clock,
    )


async def test_the_end_of_an_earlier_pods_candidate_takes_nothing_from_its_namesake(following):
    link = Link()
    following._on_link(link)
    following.on_pod(None, pod("now"))
    following._references.announce(pod("now"), "n1")
    link.say(chaperon("earlier"), None)
    assert following._references.need(MAP, link) is Need.ANNOUNCED
    link.say(chaperon("now"), None)
    assert following._references.need(MAP, link) is Need.NONE


async def test_all_that_a_candidate_needs_is_looked_at_again(following, monkeypatch):
    link, asked = Link(), []
    monkeypatch.setattr(following._tokens, "renew", lambda *args: asked.append(args))
    following.on_pod(None, pod("now"))
    following.renew(pod("now"), link)
    assert following._references.need(MAP, link) is Need.ANNOUNCED
    assert asked == [(pod("now"), link)]
    link.is_self = True
    following.renew(pod("now"), link)
    assert len(asked) == 1
