"""Override policies as long as they may be, and pods as large as API servers take, cost little.

To add a row, write a pod and rules into `LARGE`. What would take longer is refused.
"""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from tests.unit.overrides.making import policy
from tests.unit.overrides.test_overrides import POD, Chooser
from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

ALLOWED: Final = 0.5
"""Seconds of the processor; what was mended took 1.2 to 25."""
TOO_MUCH: Final = "or a smaller pod"


def _large(**spec: Any) -> Object:
    metadata: Object = {"labels": {}, "annotations": {}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def _variables(count: int) -> Object:
    return _large(containers=[{"name": "c", "env": [{"name": f"V{n:x}"} for n in range(count)]}])


def _containers(count: int) -> Object:
    return _large(containers=[{"name": f"c{n}", "image": "i"} for n in range(count)])


LARGE: Final[dict[str, tuple[Object, list[Object], str]]] = {
    "rules": (_variables(60_000), [{"labels": {"a": str(n)}} for n in range(32)], TOO_MUCH),
    "variables": (
        _variables(60_000),
        [{"env": [{"remove": [f"Z{64 * n + m}" for m in range(64)]} for n in range(60)]}],
        TOO_MUCH,
    ),
    "variables that are removed at once": (
        _variables(60_000),
        [{"env": [{"remove": [f"Z{n}" for n in range(3_000)]}]}],
        "",
    ),
    "names of containers": (
        _containers(20_000),
        [{"image": [{"tag": "1", "containers": [f"x{n}" for n in range(64)]}] * 30}],
        TOO_MUCH,
    ),
    "entries": (_containers(40_000), [{"image": [{"tag": "1"}] * 64}] * 32, TOO_MUCH),
    "words for each container": (
        _containers(40_000),
        [{"args": [{"append": ["x" * 4096] * 7}]}],
        TOO_MUCH,
    ),
    "tolerations": (
        _large(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(35_000)]),
        [{"tolerations": [{"key": f"x{n}"} for n in range(64)]}],
        "",
    ),
    "copies": (
        _large(y=[{"a": n} for n in range(8_000)]),
        [{"patches": [{"op": "copy", "from": "/spec/y", "path": "/spec/x/-"}]}] * 32,
        TOO_MUCH,
    ),
}


@pytest.mark.parametrize(("pod", "rules", "refusal"), LARGE.values(), ids=LARGE)
async def test_what_would_take_long_is_refused(
    clock: Clock, pod: Object, rules: list[Object], refusal: str
) -> None:
    chooser = Chooser(clock, policy(*rules))
    async with chooser.known() as overrides:
        override = chooser.override()
        begun = time.thread_time()
        if refusal:
            with pytest.raises(ConfigError, match=refusal):
                override.apply(pod)

            assert refusal in overrides.failures.first("ns/mirror")
        else:
            override.apply(pod)

        assert time.thread_time() - begun < ALLOWED


async def test_an_ordinary_pod_takes_hundreds_of_rules(clock: Clock) -> None:
    rules = [{"labels": {"a": str(n)}} for n in range(32)]
    chooser = Chooser(clock, *[policy(*rules, name=f"p{n}") for n in range(12)])
    pod = _variables(100)
    async with chooser.known():
        assert objects.labels(chooser.override(POD).apply(pod)) == {"a": "31"}
