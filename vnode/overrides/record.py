"""Writes on a chaperon which rules its delegate was made by, and believes only what it has signed.

A delegate keeps its overrides while it runs: what the proxy changes is sent through the same rules
once more, whatever has become of the policies. So the chaperon holds the rules themselves. It is in
the target, where others may write it, and it also says which objects follow because of it: without
the signature, which is for one pod and one target, a target could ask for any Secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from vnode.api import documents, keys
from vnode.api.errors import ConfigError
from vnode.overrides.rules import OverrideRule

KEYS: Final = (keys.OVERRIDES, keys.OVERRIDES_SIGNATURE, keys.OVERRIDDEN)
"""The annotations of a chaperon that policies have changed."""

LIMIT: Final = 32 * 1024
"""Bytes of a record; annotations of an object have 256 KiB together."""

Reference = tuple[str, str]
"""Plural of a kind, and a name in the namespace of the pod."""


class RecordedRule(msgspec.Struct):
    """One rule without its targets, and whose it is."""

    policy: str
    index: int
    rule: OverrideRule


class _RuleRecord(msgspec.Struct, omit_defaults=True):
    rules: list[RecordedRule]
    references: list[Reference] = []


class Owner(NamedTuple):
    """Whose record it is: a pod, by namespace, name and UID, and the Target by which it is sent."""

    namespace: str
    name: str
    uid: str
    target: str


def encode(rules: Iterable[RecordedRule], references: Iterable[Reference] = ()) -> str:
    """Return a record as text; ConfigError if it is too long."""
    text = msgspec.json.encode(_RuleRecord(list(rules), sorted(references))).decode()
    if len(text) > LIMIT:
        raise ConfigError(
            f"the rules of override policies that apply to the pod have over {LIMIT} bytes: have "
            "fewer or shorter rules select it"
        )

    return text


def decode(text: str) -> tuple[tuple[RecordedRule, ...], tuple[Reference, ...]]:
    """Return the rules and the references of a record; ConfigError if it cannot be read.

    Pods of one owner have equal records, which are decoded once.
    """
    if len(text) > LIMIT:
        raise _unreadable()

    return _decode(text)


@lru_cache(maxsize=256)
def _decode(text: str) -> tuple[tuple[RecordedRule, ...], tuple[Reference, ...]]:
    try:
        record = msgspec.json.decode(text, type=_RuleRecord)
    except documents.NO_JSON as error:
        raise _unreadable() from error

    return tuple(record.rules), tuple(record.references)


def _unreadable() -> ConfigError:
    return ConfigError(
        f"annotation {keys.OVERRIDES} of the chaperon was written by another version of vnode: "
        "delete the pod, for its owner to replace it"
    )


class Seal:
    """Signs records by the agents' key."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key

    def annotations(self, owner: Owner, text: str) -> dict[str, str]:
        """Return the annotations of a chaperon that hold a record."""
        return {keys.OVERRIDES: text, keys.OVERRIDES_SIGNATURE: self._sign(owner, text)}

    def believed(self, owner: Owner, annotations: dict[str, Any]) -> str | None:
        """Return the record in a chaperon's annotations, None if it is not the agents' own."""
        text, given = annotations.get(keys.OVERRIDES), annotations.get(keys.OVERRIDES_SIGNATURE)
        if not isinstance(text, str) or not isinstance(given, str):
            return None

        try:
            same = hmac.compare_digest(given.encode(), self._sign(owner, text).encode())
        except UnicodeError:
            return None

        return text if same else None

    def _sign(self, owner: Owner, text: str) -> str:
        # Manifests are signed with the same key, as lists of three: no text is good for both.
        parts = msgspec.json.encode([keys.OVERRIDES, *owner, text])
        return base64.b64encode(hmac.digest(self._key(), parts, hashlib.sha256)).decode()
