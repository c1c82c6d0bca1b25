"""Parts of the names of images."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.overrides import images

DIGEST = "sha256:" + "0" * 64
WORD = st.from_regex(r"[a-z0-9]{1,5}", fullmatch=True)
REGISTRIES = st.sampled_from(["", "mirror.example", "localhost", "localhost:5000", "a.b:1"])
REPOSITORIES = st.lists(WORD.filter(lambda w: w != "localhost"), min_size=1, max_size=3).map(
    "/".join
)
TAGS, DIGESTS = st.sampled_from(["", "1", "v1.2-x"]), st.sampled_from(["", DIGEST])


@pytest.mark.parametrize(
    ("name", "change", "wanted"),
    [
        ("nginx", {"registry": "m.example"}, "m.example/nginx"),
        ("nginx:1", {"registry": "m.example:5000"}, "m.example:5000/nginx:1"),
        ("quay.io/a/b:1", {"registry": "m.example"}, "m.example/a/b:1"),
        ("quay.io/a/b:1", {"registry": ""}, "a/b:1"),
        ("a/b", {"registry": "m.example"}, "m.example/a/b"),
        ("localhost/b", {"repository": "c"}, "localhost/c"),
        ("b:1", {"tag": "2"}, "b:2"),
        (f"b:1@{DIGEST}", {"tag": "2"}, "b:2"),
        (f"b:1@{DIGEST}", {"registry": "m.example"}, f"m.example/b:1@{DIGEST}"),
        ("b:1", {"digest": DIGEST}, f"b:1@{DIGEST}"),
        ("b:1", {"tag": "", "digest": DIGEST}, f"b@{DIGEST}"),
        (f"b@{DIGEST}", {"digest": ""}, "b"),
        ("h:5000/b", {"tag": "2"}, "h:5000/b:2"),
    ],
)
def test_parts_are_replaced(name: str, change: dict[str, str], wanted: str) -> None:
    assert images.changed(name, **change) == wanted


@given(REGISTRIES, REPOSITORIES, TAGS, DIGESTS)
def test_a_name_is_the_sum_of_its_parts(
    registry: str, repository: str, tag: str, digest: str
) -> None:
    image = images.Image(registry, repository, tag, digest)
    assert images.parse(str(image)) == image


@given(REGISTRIES, REPOSITORIES, TAGS, DIGESTS, st.data())
def test_to_change_twice_is_to_change_once(
    registry: str, repository: str, tag: str, digest: str, data: st.DataObject
) -> None:
    parts = {"registry": REGISTRIES, "repository": REPOSITORIES, "tag": TAGS, "digest": DIGESTS}
    change = {name: data.draw(st.none() | values) for name, values in parts.items()}
    once = images.changed(str(images.Image(registry, repository, tag, digest)), **change)
    assert images.changed(once, **change) == once
