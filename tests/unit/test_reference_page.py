"""docs/reference.md has every kind as the CRDs have it, and every key of `vnode.api.keys`."""

from __future__ import annotations

import pytest

from hack.fleetlib import crddocs
from vnode.api import keys

PAGE = crddocs.PAGE.read_text()
KEYS = sorted(
    value
    for name, value in vars(keys).items()
    if name.isupper()
    and isinstance(value, str)
    and value.startswith((keys.PREFIX, keys.OWN_PREFIX))
    and not value.endswith("/")
)


def test_the_kinds_are_those_of_the_crds() -> None:
    assert crddocs.updated(PAGE) == PAGE, "run hack/reference"
    assert "excludedLabelsRegexp" in PAGE


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_there(key: str) -> None:
    assert f"`{key}`" in PAGE
