"""Who creates an AuthTokenRequest is recorded, and stays; reviews of all sorts are answered."""

from __future__ import annotations

import base64
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, objects
from vnode.api.authors import Author, RecordedAuthors
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.objects import Object
from vnode.webhook.authors import AuthorWebhook

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AUTHORS = RecordedAuthors(lambda: bytes(32), lambda: NOW)
FORGED = {keys.AUTHOR: '{"username":"root"}', keys.AUTHOR_SIGNATURE: "c2ln"}


async def refusal(obj: Object, author: Author) -> str:
    assert objects.namespace(obj) == "team"
    if author.username == "broken":
        raise Unreachable("no answer")

    return "mallory may not" if author.username == "mallory" else ""


WEBHOOK = AuthorWebhook(AUTHORS, refusal)


def request(**annotations: str) -> Object:
    metadata = {"name": "queue", "annotations": annotations}
    return {"kind": "AuthTokenRequest", "metadata": metadata, "spec": {}}


async def answer(obj: Object, user: str = "alice", **more: Any) -> Object:
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "operation": "CREATE",
            "namespace": "team",
            "userInfo": {"username": user, "groups": ["g"], "extra": {"k": ["v"]}},
            "object": obj,
            **more,
        },
    }
    review = json.loads(await WEBHOOK.review(json.dumps(body).encode()))
    response: Object = review["response"]
    assert response.pop("uid") == "u-1"
    return response


def admitted(obj: Object, response: Object) -> Object:
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    found: Object = jsonpatch.apply_patch(obj, patch)
    found["metadata"] |= {"namespace": "team", "creationTimestamp": objects.timestamp(NOW)}
    return found


@pytest.mark.parametrize("annotations", [{}, FORGED, {keys.AUTHOR: "x"}])
async def test_the_author_is_who_creates_it_whatever_it_says(annotations: dict[str, str]) -> None:
    sent = request(**annotations)
    author = AUTHORS.author(admitted(sent, await answer(sent)))
    assert author == Author("alice", groups=("g",), extra={"k": ("v",)})


async def test_a_name_that_is_generated_keeps_the_signature() -> None:
    sent = request()
    sent["metadata"] = {"generateName": "queue-"}
    made = admitted(sent, await answer(sent))
    made["metadata"]["name"] = "queue-x7f2p"
    assert AUTHORS.author(made) is not None


async def test_no_update_changes_the_author() -> None:
    sent = request()
    old = admitted(sent, await answer(sent))
    for written in (FORGED, {}, {keys.AUTHOR: ""}):
        new = request(**written)
        after = admitted(new, await answer(new, "bob", operation="UPDATE", oldObject=old))
        assert AUTHORS.author(after) == AUTHORS.author(old) != None  # noqa: E711

    signed, plain = request(**objects.annotations(old)), request()
    after = admitted(signed, await answer(signed, operation="UPDATE", oldObject=plain))
    assert AUTHORS.author(after) is None
    assert (await answer(old, "bob", operation="UPDATE", oldObject=old)) == {"allowed": True}


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj["metadata"].update(name="other"),
        lambda obj: obj["metadata"].update(namespace="other"),
        lambda obj: obj.update(kind="Other"),
        lambda obj: obj["metadata"]["annotations"].update({keys.AUTHOR: '{"username":"root"}'}),
        lambda obj: obj["metadata"]["annotations"].pop(keys.AUTHOR_SIGNATURE),
    ],
)
async def test_a_signature_is_good_for_one_object(change: Any) -> None:
    made = admitted(request(), await answer(request()))
    assert AUTHORS.author(made) is not None
    change(made)
    assert AUTHORS.author(made) is None


@pytest.mark.parametrize(
    ("later", "is_believed"), [(-10, False), (-1, True), (29, True), (31, False), (86400, False)]
)
async def test_a_signature_is_good_for_an_object_that_was_created_then(
    later: int, is_believed: bool
) -> None:
    """Whoever has got one in time could else use it while no webhook is called."""
    made = admitted(request(), await answer(request()))
    created = objects.timestamp(NOW + timedelta(seconds=later))
    made["metadata"]["creationTimestamp"] = created
    assert (AUTHORS.author(made) is not None) == is_believed


async def test_the_time_of_a_signature_cannot_be_changed() -> None:
    made = admitted(request(), await answer(request()))
    annotations = objects.annotations(made)
    time, _, signature = annotations[keys.AUTHOR_SIGNATURE].partition(".")
    for forged in (f"{int(time) + 3600}.{signature}", signature, f".{signature}"):
        annotations[keys.AUTHOR_SIGNATURE] = forged
        made["metadata"]["creationTimestamp"] = objects.timestamp(NOW + timedelta(hours=1))
        assert AUTHORS.author(made) is None


@pytest.mark.parametrize(("created", "is_believed"), [(-1, True), (1, False)])
async def test_a_signature_without_a_time_is_good_for_what_was_created_before_there_were_times(
    created: int, is_believed: bool
) -> None:
    made = admitted(request(), await answer(request()))
    text = objects.annotations(made)[keys.AUTHOR]
    # As agents wrote it before: a literal, so that no change of the code changes both.
    objects.annotations(made)[keys.AUTHOR_SIGNATURE] = base64.b64encode(
        hmac.digest(
            bytes(32),
            json.dumps(
                ["author", "AuthTokenRequest", "team", "queue", text], separators=(",", ":")
            ).encode(),
            "sha256",
        )
    ).decode()
    made["metadata"]["creationTimestamp"] = objects.timestamp(NOW + timedelta(seconds=created))
    authors = RecordedAuthors(lambda: bytes(32), lambda: NOW, lambda: NOW)
    assert (authors.author(made) is not None) == is_believed
    assert AUTHORS.author(made) is None


async def test_who_may_not_is_told_at_once() -> None:
    refused = await answer(request(), "mallory")
    assert (refused["allowed"], refused["status"]["code"]) == (False, 403)
    assert refused["status"]["message"] == "mallory may not"
    unknown = await answer(request(), "broken")
    assert (unknown["allowed"], unknown["status"]["code"]) == (False, 503)


@given(
    st.binary(max_size=60)
    | st.recursive(st.none() | st.text(), st.lists).map(
        lambda value: json.dumps({"request": value}).encode()
    )
)
def test_what_is_no_review_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(ConfigError, match="not an AdmissionReview"):
        WEBHOOK.review(body).send(None)


async def test_an_object_of_another_shape_is_a_bad_request() -> None:
    for obj in ({"metadata": {"annotations": {"a": 1}}}, {"metadata": None}, {}):
        with pytest.raises(ConfigError):
            await answer(obj)
