"""Records who created an object, so that it can be given no more than its author has.

An object does not say who made it; its admission does. The webhook writes the author into an
annotation, and signs that by the agents' key: what somebody else has written there, while no
webhook was called, is not believed (docs/decisions/0055).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Final

import msgspec

from vnode.api import keys, objects
from vnode.api.objects import Object

_PURPOSE: Final = "author"  # other signatures by the same key are of other things


class Author(msgspec.Struct, frozen=True):
    """A user, as an API server has authenticated them."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}

    def review(self, attributes: Object) -> Object:
        """Build the spec of a SubjectAccessReview: may they do that?

        `attributes` are those of a resource, or with `path` of what is none.
        """
        kind = "nonResourceAttributes" if "path" in attributes else "resourceAttributes"
        user = {"user": self.username, "groups": list(self.groups), kind: attributes}
        if self.uid:
            user["uid"] = self.uid

        if self.extra:
            user["extra"] = {key: list(values) for key, values in self.extra.items()}

        return user


class RecordedAuthors:
    """Writes and reads the annotations; `key` returns the key that all agents share."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key

    def annotations(self, obj: Object, namespace: str, author: Author) -> dict[str, str]:
        """Return the annotations for an object that they create in that namespace."""
        text = msgspec.json.encode(author).decode()
        signature = self._sign(obj, namespace, text)
        return {keys.AUTHOR: text, keys.AUTHOR_SIGNATURE: signature}

    def author(self, obj: Object) -> Author | None:
        """Return who created an object; None if nobody has signed for that."""
        annotations = objects.annotations(obj)
        text, given = annotations.get(keys.AUTHOR), annotations.get(keys.AUTHOR_SIGNATURE)
        if text is None or given is None:
            return None

        if not hmac.compare_digest(
            given.encode(), self._sign(obj, objects.namespace(obj), text).encode()
        ):
            return None

        try:
            return msgspec.json.decode(text, type=Author)
        except (msgspec.MsgspecError, RecursionError):
            return None

    def _sign(self, obj: Object, namespace: str, text: str) -> str:
        metadata = objects.metadata(obj)
        # An object that is being created may have no name yet, but what it is generated from.
        name = metadata.get("generateName") or metadata.get("name") or ""
        parts = msgspec.json.encode([_PURPOSE, str(obj.get("kind", "")), namespace, name, text])
        return base64.b64encode(hmac.digest(self._key(), parts, hashlib.sha256)).decode()
