"""When a change of a bound proxy pod is sent to its chaperon, and what is told of a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from tests.permitted import MANIFESTS
from tests.unit.pods.bound_pods import PARENT, SPACE, BoundPodsEnvironment
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, ConfigError, Denied, Invalid, ServerError, Unreachable
from vnode.api.objects import Object
from vnode.pods import chaperons
from vnode.pods.source.change_sender import ChangeSender
from vnode.runtime.expectations import Expectations
from vnode.runtime.target_options import TargetOptions
from vnode.runtime.write_limits import CHANGES

pytestmark = pytest.mark.looptime

GET, PATCH = ("get", "web"), ("patch", "")


class Sending:
    """A sender, whose pod has a chaperon; `proxy` is the pod as the informer shows it."""

    def __init__(self, env: BoundPodsEnvironment, clock: Clock) -> None:
        self.env = env
        self.target = env.target
        self.proxy = env.add(metadata={"labels": {"app": "web"}})
        self.target.add(self.proxy)
        client = env.source.client()
        self.sender = ChangeSender(client, env.factory, env.events, Expectations(), clock)

    async def send(self, candidate: Object | None = None) -> float | None:
        """Send what differs from the chaperon as it is now, or from `candidate`."""
        shown = candidate or self.target.chaperon()
        assert shown is not None
        return await self.sender.send(self.proxy, shown, self.target.link)

    def change(self, change: Callable[[Object], object]) -> None:
        """Change the pod, and let the informer show that."""
        self.proxy = self.env.change(change)

    def label(self, value: str) -> None:
        self.change(lambda pod: pod["metadata"].update(labels={"app": value}))

    def labels(self) -> dict[str, str]:
        """Return the labels of the chaperon."""
        return objects.labels(self.target.chaperon() or {})

    @property
    def asked(self) -> list[tuple[str, str]]:
        """What the source was asked about pods, by verb and name."""
        return [(r.verb, r.name) for r in self.env.source.received(kind=kinds.PODS)]

    async def event_messages(self) -> list[str]:
        """Wait until Events are written; their messages."""
        await asyncio.sleep(1)
        return self.env.event_messages("ChangeRefused")


@pytest.fixture
async def sending(clock: Clock) -> AsyncIterator[Sending]:
    env = BoundPodsEnvironment(clock)
    async with asyncio.TaskGroup() as group:
        events = group.create_task(env.events.run())
        yield Sending(env, clock)
        events.cancel()


# --- how often it is sent


async def test_a_pod_that_is_changed_all_the_time_is_sent_now_and_then_as_it_is_then(
    sending: Sending, clock: Clock
) -> None:
    for number in range(CHANGES.burst):
        sending.label(f"v{number}")
        assert await sending.send() is None

    sending.label("late")
    wait = await sending.send()
    assert wait == pytest.approx(1 / CHANGES.rate)
    assert sending.labels()[keys.PREFIX + "app"] == f"v{CHANGES.burst - 1}"
    sending.label("latest")
    await clock.sleep(wait or 0)
    assert await sending.send() is None
    assert sending.labels()[keys.PREFIX + "app"] == "latest"


async def test_what_a_candidate_has_to_be_before_it_is_allowed_waits_for_nothing(
    sending: Sending,
) -> None:
    for number in range(CHANGES.burst + 3):
        sending.label(f"v{number}")
        shown = sending.target.chaperon()
        assert shown is not None
        at_once = sending.sender.send(sending.proxy, shown, sending.target.link, at_once=True)
        assert await at_once is None
        assert sending.labels()[keys.PREFIX + "app"] == f"v{number}"


async def test_a_change_that_is_taken_back_is_not_sent(sending: Sending, clock: Clock) -> None:
    for number in range(CHANGES.burst):
        sending.label(f"v{number}")
        await sending.send()

    sending.label("late")
    wait = await sending.send()
    sending.label(f"v{CHANGES.burst - 1}")
    before = len(sending.asked)
    await clock.sleep(wait or 0)
    assert await sending.send() is None
    assert len(sending.asked) == before


# --- what is sent


async def test_where_nothing_has_changed_nobody_is_asked(sending: Sending) -> None:
    assert await sending.send() is None
    assert sending.asked == []
    assert sending.target.server.requests == []


async def test_a_change_is_sent_by_one_write_to_that_very_chaperon(sending: Sending) -> None:
    sending.label("db")
    assert await sending.send() is None
    assert sending.labels()[keys.PREFIX + "app"] == "db"
    assert sending.asked == [GET]
    (request,) = sending.target.server.requests
    assert objects.uid(request.body) == objects.uid(sending.target.chaperon() or {})
    assert await sending.send() is None
    assert sending.target.writes == [PATCH]


async def test_the_pod_is_sent_as_it_is_now_and_not_as_it_was_shown(sending: Sending) -> None:
    sending.label("db")
    sending.env.change(lambda pod: pod["metadata"].update(labels={"app": "cache"}))
    await sending.send()
    assert sending.labels()[keys.PREFIX + "app"] == "cache"


async def test_news_that_the_pod_itself_does_not_confirm_are_not_sent(sending: Sending) -> None:
    sending.label("db")
    sending.env.change(lambda pod: pod["metadata"].update(labels={"app": "web"}))
    await sending.send()
    assert sending.asked == [GET]
    assert sending.target.writes == []


async def test_a_container_that_speaks_by_a_secret_keeps_its_api_server(sending: Sending) -> None:
    """A change of the image writes all of a container."""
    sending.target.link.options = TargetOptions(source_api=("api", "6443"))
    mounts = [{"name": "v", "mountPath": "/v"}]
    container = {"name": "main", "image": "a", "volumeMounts": mounts}
    volumes = [{"name": "v", "secret": {"secretName": "exec"}}]
    sending.change(lambda pod: pod["spec"].update(containers=[container], volumes=volumes))
    made = chaperons.for_link(
        *(sending.proxy, PARENT, sending.target.link),
        manifests=MANIFESTS,
        allowed=True,
        tokens=["exec"],
    )
    variables = objects.spec(made)["containers"][0]["env"]
    shown = sending.target.chaperon() or {}
    shown = {**shown, "spec": made["spec"]}
    shown["metadata"] = {**shown["metadata"], "annotations": objects.annotations(made)}
    sending.target.server.add(kinds.POD_CHAPERONS, shown)
    sending.change(lambda pod: pod["spec"]["containers"][0].update(image="b"))
    await sending.send()
    (sent,) = objects.spec(sending.target.chaperon() or {})["containers"]
    assert (sent["image"], sent["env"]) == ("b", variables)


async def test_before_a_write_is_seen_nothing_is_sent_again(sending: Sending) -> None:
    before = sending.target.chaperon()
    sending.label("db")
    await sending.send(before)
    await sending.send(before)
    assert sending.asked == [GET]
    assert sending.target.writes == [PATCH]
    sending.label("cache")
    await sending.send()
    assert sending.target.writes == [PATCH, PATCH]


async def test_a_write_that_arrives_late_undoes_nothing(sending: Sending) -> None:
    """It was under way when its leader was killed, and the next leader has sent more since."""
    held_up = Unreachable("no answer")
    sending.target.server.fail(held_up, kind=kinds.POD_CHAPERONS, verb="patch", late=lambda: 5.0)
    sending.label("db")
    with pytest.raises(Unreachable):
        await sending.send()

    sending.change(lambda pod: pod["metadata"]["annotations"].update(note="new"))
    await sending.send()
    written = sending.target.chaperon()
    assert objects.annotations(written or {})["note"] == "new"
    await asyncio.sleep(6)
    assert sending.target.chaperon() == written


async def test_nothing_is_sent_to_a_target_that_does_not_answer(sending: Sending) -> None:
    sending.target.set_answering(False)
    sending.label("db")
    assert await sending.send() is None
    assert sending.asked == []
    assert sending.target.writes == []


@pytest.mark.parametrize("successor", [None, "another"])
async def test_a_pod_that_is_gone_sends_nothing_and_its_namesake_not_in_its_place(
    sending: Sending, successor: str | None
) -> None:
    sending.label("db")
    sending.env.source.remove(kinds.PODS, "web", SPACE)
    if successor:
        sending.env.add(metadata={"uid": successor})

    assert await sending.send() is None
    assert sending.target.writes == []


async def test_a_chaperon_that_is_gone_is_no_failure(sending: Sending) -> None:
    before = sending.target.chaperon()
    sending.label("db")
    sending.target.remove()
    assert await sending.send(before) is None
    assert await sending.event_messages() == []


@pytest.mark.parametrize("error", [ServerError(500, "", "no leader"), Unreachable("away")])
async def test_what_may_pass_is_for_whoever_reconciles_to_try_again(
    sending: Sending, error: ServerError | Unreachable
) -> None:
    sending.target.server.fail(error, verb="patch")
    sending.label("db")
    with pytest.raises(type(error)):
        await sending.send()

    assert await sending.event_messages() == []
    await sending.send()
    assert sending.labels()[keys.PREFIX + "app"] == "db"


async def test_what_is_sent_is_built_with_the_tokens_that_the_target_is_to_have(
    sending: Sending,
) -> None:
    """As the chaperon was; containers are sent whole, so they would lose the address."""
    link = sending.target.link
    link.options = TargetOptions(source_api=("api.c1", "6443"))
    mount = {"name": "kube-api-access-x", "mountPath": keys.SERVICE_ACCOUNT_MOUNT}
    container = {"name": "main", "image": "nginx:2", "volumeMounts": [mount]}
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    volume = {"name": mount["name"], "projected": {"sources": [token]}}
    sending.change(lambda pod: pod["spec"].update(containers=[container], volumes=[volume]))
    await sending.send()
    (request,) = sending.target.server.received("patch")
    (sent,) = request.body["spec"]["containers"]
    assert {"name": "KUBERNETES_SERVICE_HOST", "value": "api.c1"} in sent["env"]


# --- what is refused


@pytest.mark.parametrize("error", [Denied(403, "", "no way"), Invalid(422, "", "too large")])
async def test_a_change_that_the_target_refuses_is_told_once_and_tried_again_later(
    sending: Sending, error: ApiError
) -> None:
    fault = sending.target.server.fail(error, verb="patch", times=None)
    sending.label("db")
    assert await sending.send() == 30
    assert await sending.send() == 30
    (message,) = await sending.event_messages()
    assert "target shop/c2 refused the change" in message
    assert error.message in message
    assert sending.env.times_told("ChangeRefused") == 1
    fault.clear()
    assert await sending.send() is None
    assert sending.labels()[keys.PREFIX + "app"] == "db"


async def test_annotations_that_cannot_be_read_are_told_and_wait_for_a_change(
    sending: Sending,
) -> None:
    sending.change(
        lambda pod: pod["metadata"]["annotations"].update({keys.NO_PREFIX_LABEL_REGEXP: "("})
    )
    with pytest.raises(ConfigError) as problem:
        chaperons.labels(sending.proxy, PARENT)

    assert await sending.send() is None
    assert await sending.event_messages() == [str(problem.value)]
    assert sending.target.writes == []


async def test_what_the_agent_of_the_target_refused_is_told_once(sending: Sending) -> None:
    sending.target.annotate(**{keys.REFUSED: "pods may not be resized"})
    for _ in range(3):
        assert await sending.send() is None

    (message,) = await sending.event_messages()
    assert message.endswith("refused the change: pods may not be resized")
    assert sending.env.times_told("ChangeRefused") == 1


async def test_a_refusal_that_was_withdrawn_and_comes_again_is_told_again(
    sending: Sending,
) -> None:
    for _ in range(2):
        sending.target.annotate(**{keys.REFUSED: "no"})
        await sending.send()
        sending.target.change(lambda each: each["metadata"]["annotations"].pop(keys.REFUSED))
        await sending.send()

    await asyncio.sleep(100)
    assert sending.env.times_told("ChangeRefused") == 2


async def test_a_pod_of_the_same_name_hears_of_its_own_refusal(sending: Sending) -> None:
    for _ in range(2):
        sending.target.annotate(**{keys.REFUSED: "no"})
        await sending.send()
        sending.sender.forget(objects.key(sending.proxy))

    await asyncio.sleep(100)
    assert sending.env.times_told("ChangeRefused") == 2
