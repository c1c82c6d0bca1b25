"""Mutates valid samples, so that inputs get past the first check.

A structure is mutated where its leaves are, and written as JSON that may have duplicate members and
values that Python has not; bytes are cut, flipped and repeated. `Mutator` draws from one source of
randomness, so that a seed gives the same input each time.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

Path = tuple[Any, ...]

_DEEP: Final = 100_000
_LONG: Final = 200_000
_MANY: Final = 20_000
_RARE: Final = 0.1  # how often a value is one of those that take long

TEXTS: Final = (
    *("", " ", ".", "..", "../..", "/", "a/b", "..%2fsecrets", "%2e%2e", "%00", "a?b", "a#b"),
    *("\0", "a\0b", "a\nb", "a\r\nX-Header: b", "\x1b[31m", "\x7f", "\u202e", "\ufeff", "\ud7ff"),
    *("💥", "e\u0301", "\u0131", "null", "true", "NaN", "-1", "1e999", "9" * 400, "0x10", "1_000"),
    *("1Ei", "9" * 30 + "Ei", "-1Gi", "1e-400", "{}", "[]", '{"a":', "---\n- &a [*a]", "!!python"),
    *("(a+)+$", "a{1000}{1000}", "(?P<x>", "[", "*", "a,b=c", "=", "a=b=c", "0000-00-00T00:00:00Z"),
    *("2026-01-01T00:00:00Z", "99999-01-01T00:00:00Z", "2026-13-45T99:99:99Z", "x" * 64, "x" * 254),
    *("true ", "Running", "Succeeded", "Failed", "Unheard", "default", "kube-system", "vnode"),
    *("bystander", "singleton", "::1", "127.0.0.1", "169.254.169.254", "0.0.0.0", "http://x"),
)
"""Texts that have a meaning somewhere, or that somebody could take for something else."""

_NUMBERS: Final = (0, -1, 1, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, 2**63, 2**64, 1.5, -0.0, 1e308)


class Raw(bytes):
    """JSON that is written as it is."""

    __slots__ = ()


_RAW: Final = (
    Raw(b"1e999"),
    Raw(b"NaN"),
    Raw(b"-"),
    Raw(b"9" * 5000),
    Raw(b'"\\ud800"'),
    Raw(b'"\xff\xfe"'),
    Raw(b'"\\u0000"'),
    Raw(b"[" * 300 + b"]" * 300),
)
_HUGE: Final = (
    Raw(b"[" * _DEEP + b"]" * _DEEP),
    Raw(b'{"a":' * _DEEP + b"1" + b"}" * _DEEP),
    Raw(b"{" + b",".join(b'"k%d":0' % number for number in range(_MANY)) + b"}"),
    Raw(b"[" + b"0," * _MANY + b"0]"),
    Raw(b'"' + b"x" * _LONG + b'"'),
)


class Mutator:
    """Mutates by `dice`. A `wild` value may be anything; others keep the types of the sample."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def text(self, sample: str = "") -> str:
        """Make a text of another one."""
        dice = self.dice
        match dice.randrange(6):
            case 0:
                return sample + dice.choice(TEXTS)
            case 1:
                return dice.choice(TEXTS) + sample
            case 2:
                return sample[: dice.randrange(len(sample) + 1)]
            case 3 if sample:
                where = dice.randrange(len(sample))
                return sample[:where] + chr(dice.choice((0, 9, 47, 92, 233))) + sample[where + 1 :]
            case 4 if dice.random() < _RARE:
                return (sample or "x") * (_LONG // max(1, len(sample)))
            case _:
                return dice.choice(TEXTS)

    def leaf(self, sample: Any, *, wild: bool) -> Any:
        """Replace one value by another one."""
        dice = self.dice
        if not wild:
            return self._alike(sample)

        match dice.randrange(5):
            case 0:
                return self._alike(sample)
            case 1:
                return dice.choice(_NUMBERS)
            case 2:
                return dice.choice((None, True, False, [], {}, [None], {"": None}, [[]], [{}]))
            case 3:
                return self.text(sample if isinstance(sample, str) else "")
            case _:
                return dice.choice(_HUGE if dice.random() < _RARE else _RAW)

    def _alike(self, sample: Any) -> Any:
        match sample:
            case bool():
                return not sample
            case int():
                return self.dice.choice([each for each in _NUMBERS if isinstance(each, int)])
            case float():
                return float(self.dice.choice(_NUMBERS))
            case str():
                return self.text(sample)
            case [] | {}:
                return sample
            case list():
                return sample * self.dice.choice((0, 2, 50))
            case dict():
                return {key: value for key, value in sample.items() if self.dice.random() < 0.5}
            case _:
                return sample

    def value(self, sample: Any, *, wild: bool = True, times: int | None = None) -> Any:
        """Copy a structure with some of its values, members and keys replaced."""
        made = deepcopy(sample)
        for _number in range(self.dice.choice((1, 1, 2, 4)) if times is None else times):
            made = self._once(made, wild=wild)

        return made

    def _once(self, root: Any, *, wild: bool) -> Any:
        places = paths(root)
        if not places:
            return self.leaf(root, wild=wild)

        *parents, last = self.dice.choice(places)
        holder = root
        for step in parents:
            holder = holder[step]

        action = self.dice.randrange(8) if wild else self.dice.randrange(6)
        if action == 0:
            del holder[last]
        elif action == 1 and isinstance(holder, dict) and wild:
            holder[self.text(str(last))] = holder.pop(last)
        elif action == 2 and wild:  # what another place has
            holder[last] = deepcopy(self._pick(root))
        else:
            holder[last] = self.leaf(holder[last], wild=wild)

        return root

    def _pick(self, root: Any) -> Any:
        found = root
        for step in self.dice.choice(paths(root)):
            found = found[step]

        return found

    def written(self, value: Any) -> bytes:
        """Write JSON, some members of which may be there twice."""
        twice = 0.02 if self.dice.random() < 0.2 else 0.0
        return _written(value, lambda: self.dice.random() < twice)

    def payload(self, sample: Any) -> bytes:
        """Write a mutated structure, or mutated bytes of it, as JSON."""
        if self.dice.random() < 0.7:
            return self.written(self.value(sample))

        return self.bytes(_written(sample))

    def bytes(self, sample: bytes) -> bytes:
        """Cut, flip, splice or repeat bytes."""
        dice = self.dice
        where = dice.randrange(len(sample) + 1)
        match dice.randrange(7):
            case 0:
                return sample[:where]
            case 1:
                flipped = bytearray(sample)
                for _number in range(dice.choice((1, 4, 32)) if sample else 0):
                    flipped[dice.randrange(len(sample))] ^= 1 << dice.randrange(8)

                return bytes(flipped)
            case 2:
                return sample[where:] + sample[:where]
            case 3:
                piece = sample[where : where + dice.randrange(1, 20)]
                return sample[:where] + piece * dice.choice((2, 100, 100, 10_000)) + sample[where:]
            case 4:
                raw = dice.choice(_HUGE if dice.random() < _RARE else _RAW)
                return sample[:where] + raw + sample[where:]
            case 5:
                return dice.randbytes(dice.choice((1, 16, 1000)))
            case _:
                return sample[:where] + b"\0\xff\xc0\x80"[: dice.randrange(1, 5)] + sample[where:]


def paths(root: Any) -> list[Path]:
    """List the places of all values in a structure, but for the structure itself."""
    found: list[Path] = []
    stack: list[tuple[Path, Any]] = [((), root)]
    while stack:
        path, value = stack.pop()
        members: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            members = list(value.items())
        elif isinstance(value, list):
            members = list(enumerate(value[:20]))

        for key, member in members:
            found.append((*path, key))
            stack.append(((*path, key), member))

    return found


def _written(value: Any, twice: Callable[[], bool] = lambda: False) -> bytes:
    match value:
        case Raw():
            return value
        case dict():
            members = [
                json.dumps(key).encode() + b":" + _written(member, twice)
                for key, member in value.items()
                for _again in range(2 if twice() else 1)
            ]
            return b"{" + b",".join(members) + b"}"
        case list():
            return b"[" + b",".join(_written(member, twice) for member in value) + b"]"
        case _:
            return json.dumps(value).encode()


def bomb(size: int) -> bytes:
    """Compress that many bytes of JSON, a list of empty objects."""
    return gzip.compress(b'{"kind":"List","metadata":{},"items":[' + b"{}," * (size // 3) + b"{}]}")
