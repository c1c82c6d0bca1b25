"""Objects that are kept share their short strings, at a bounded cost."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from vnode.api import shared_strings
from vnode.api.objects import Object
from vnode.api.shared_strings import sharing


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    shared_strings._known.clear()
    yield
    shared_strings._known.clear()


def fresh(text: str) -> str:
    """Return an equal string that is another object, as a decoder makes it."""
    return "".join(text)[:1] + text[1:]


def pod(image: str = "busybox", **metadata: str) -> Object:
    return {"metadata": metadata, "status": {"containers": [{"image": fresh(image)}]}}


def image_of(obj: Object) -> str:
    return str(obj["status"]["containers"][0]["image"])


def keep(obj: Object) -> Object:
    return sharing(lambda each: {**each, "trimmed": True})(obj)


def test_equal_strings_are_one_and_objects_stay_equal() -> None:
    first, second = keep(pod(name="a")), keep(pod(name="b"))
    assert first == {**pod(name="a"), "trimmed": True}
    assert image_of(first) is image_of(second)
    assert image_of(pod()) is not image_of(pod())


@pytest.mark.parametrize("field", ["name", "uid", "resourceVersion"])
def test_what_each_object_has_of_its_own_is_not_remembered(field: str) -> None:
    keep(pod(**{field: "one-of-many"}))
    assert "one-of-many" not in shared_strings._known


def test_long_strings_are_not_remembered() -> None:
    keep(pod("x" * shared_strings.SHORT))
    assert not shared_strings._known


def test_what_is_not_of_json_stays_as_it_is() -> None:
    refs = (("Secret", "a"),)
    assert keep({**pod(), "references": refs})["references"] is refs


def test_strings_without_end_do_not_pile_up() -> None:
    for number in range(3 * shared_strings.MOST // 100):
        keep({"status": {f"field-{n}": f"{number}-{n}" for n in range(100)}})
        assert len(shared_strings._known) <= shared_strings.MOST + shared_strings.BUDGET

    first, second = keep(pod()), keep(pod())
    assert image_of(first) is image_of(second)


@pytest.mark.parametrize(
    "huge",
    [
        {"values": [f"v{n}" for n in range(300_000)]},
        {"values": [{"v": f"v{n}"} for n in range(150_000)]},
        {"values": [[]] * 300_000},
        {f"key-{n}": f"v{n}" for n in range(300_000)},
    ],
    ids=["strings", "objects", "empty", "fields"],
)
def test_an_object_of_very_many_values_costs_no_time(huge: Object) -> None:
    began = time.thread_time()
    keep(huge)
    assert time.thread_time() - began < 0.02
    assert len(shared_strings._known) <= shared_strings.BUDGET


def test_a_part_that_is_too_large_ends_it_however_it_is_nested() -> None:
    nested: Object = {"image": fresh("busybox")}
    for _ in range(90):
        nested = {"more": [nested, *({"v": str(n)} for n in range(100))]}

    keep(nested)
    assert len(shared_strings._known) <= shared_strings.BUDGET
