"""What is asked of the target's API server for a change, and when it is asked again."""

from __future__ import annotations

from vnode.api import keys, kinds, objects
from vnode.api.errors import Invalid
from vnode.pods import agreement, updating
from vnode.pods.updating import Updater

EPHEMERAL = "ephemeralcontainers"
GATE = "example.com/lb-ready"


class Target:
    """Answers patches of pods, or refuses those of some subresources."""

    def __init__(self, *refused):
        self.refused = set(refused)
        self.patches = []  # (subresource, body)

    async def get(self, kind, name, namespace):
        if kind is kinds.PODS:
            return {"metadata": {"uid": "u"}, "spec": {"readinessGates": [{"conditionType": GATE}]}}

        return {"spec": {"ephemeralContainers": [{"name": "shell", "image": "busybox"}]}}

    async def patch(self, kind, name, body, namespace, *, subresource, strategic):
        assert strategic
        self.patches.append((subresource, body))
        if subresource in self.refused:
            raise Invalid(422, "Invalid", f"no {subresource}")

        return {"metadata": {**body["metadata"], "resourceVersion": "8"}}

    @property
    def asked(self):
        return [subresource for subresource, _body in self.patches]


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


def pair(sent, done=None):
    """A chaperon and its delegate with their records."""

    def obj(record):
        notes = {keys.SENT: agreement.text(record)} if record else {}
        return {
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "uid": "u",
                "resourceVersion": "7",
                "annotations": notes,
            }
        }

    return obj(sent), obj(done)


RESIZE = {"resources": {"containers": {"main": {"requests": {"cpu": "2"}}}}}
DEBUG = {"ephemeralContainers": {"shell": True}}
LABEL = {"labels": {"app": "web"}}
OPENED = {"conditions": {GATE: {"status": "True"}}}


def written_record(body):
    return agreement.read(body, keys.SENT)


async def test_nothing_is_asked_where_nothing_changed():
    target = Target()
    assert await Updater(target, Clock()).bring(*pair(LABEL, LABEL)) is None
    assert target.asked == []


async def test_each_part_has_its_own_request_and_the_last_one_writes_the_record():
    target = Target()
    updater = Updater(target, Clock())
    chaperon, pod = pair(RESIZE | DEBUG | LABEL)
    assert await updater.bring(chaperon, pod) is None
    assert target.asked == ["resize", EPHEMERAL, None]
    assert written_record(target.patches[-1][1]) == RESIZE | DEBUG | LABEL
    assert updater.under_way(pod)


async def test_what_was_refused_stays_out_of_the_record_and_the_rest_is_done():
    target = Target("resize")
    refusal = await Updater(target, Clock()).bring(*pair(RESIZE | LABEL))
    assert refusal == "no resize"
    assert written_record(target.patches[-1][1]) == LABEL
    assert objects.labels(target.patches[-1][1]) == {"app": "web"}


async def test_a_condition_goes_to_the_status_and_its_refusal_keeps_nothing_back():
    target = Target()
    assert await Updater(target, Clock()).bring(*pair(OPENED | LABEL)) is None
    assert target.asked == ["status", None]
    condition = {"type": GATE, "status": "True"}
    assert objects.status(target.patches[0][1]) == {"conditions": [condition]}
    assert written_record(target.patches[1][1]) == OPENED | LABEL

    target = Target("status")
    assert await Updater(target, Clock()).bring(*pair(OPENED | LABEL)) == "no status"
    assert written_record(target.patches[1][1]) == LABEL


async def test_all_refusals_are_told():
    target = Target("resize", EPHEMERAL)
    refusal = await Updater(target, Clock()).bring(*pair(RESIZE | DEBUG))
    assert refusal == f"no resize; no {EPHEMERAL}"
    assert target.asked == ["resize", EPHEMERAL]


async def test_what_was_refused_is_asked_again_after_a_while_only():
    target, clock = Target("resize"), Clock()
    updater = Updater(target, clock)
    await updater.bring(*pair(RESIZE))
    assert await updater.bring(*pair(RESIZE)) == "no resize"
    assert target.asked == ["resize"]

    clock.now += updating.AGAIN
    target.refused.clear()
    assert await updater.bring(*pair(RESIZE)) is None
    assert target.asked == ["resize", "resize", None]


async def test_another_change_is_tried_at_once():
    target = Target("resize")
    updater = Updater(target, Clock())
    await updater.bring(*pair(RESIZE))
    await updater.bring(*pair(RESIZE | LABEL))
    assert target.asked == ["resize", "resize", None]
