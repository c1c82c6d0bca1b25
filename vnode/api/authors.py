"""Records who created an object, so that it can be given no more than its author has.

An object does not say who made it; its admission does. The webhook writes the author into an
annotation, and signs that by the agents' key: what somebody else has written there, while no
webhook was called, is not believed (docs/decisions/0055).

A signature that somebody had kept could be put on an object while no webhook is called, were it
good for ever. So it says when it was made, and is believed of an object that was created then. Of
those from before signatures had a time, the key's Secret says until when there were such.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from vnode.api import keys, objects
from vnode.api.objects import Object

_SLOWEST: Final = timedelta(seconds=30)
"""From the signature to the creation, which waits for all other webhooks."""
_SKEW: Final = timedelta(seconds=5)  # of two clocks, and of times without fractions
NEVER: Final = datetime.min.replace(tzinfo=UTC)
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
    """Writes and reads the annotations.

    `key` returns the key that all agents share, `now` the API server's time, and `timed_since` from
    when on all signatures have a time.
    """

    def __init__(
        self,
        key: Callable[[], bytes],
        now: Callable[[], datetime],
        timed_since: Callable[[], datetime] = lambda: NEVER,
    ) -> None:
        self._key = key
        self._now = now
        self._timed_since = timed_since

    def annotations(self, obj: Object, namespace: str, author: Author) -> dict[str, str]:
        """Return the annotations for an object that they create in that namespace."""
        text = msgspec.json.encode(author).decode()
        time = str(int(self._now().timestamp()))
        signature = self._sign(obj, namespace, text, time)
        return {keys.AUTHOR: text, keys.AUTHOR_SIGNATURE: f"{time}.{signature}"}

    def author(self, obj: Object) -> Author | None:
        """Return who created an object; None if nobody has signed for that."""
        annotations = objects.annotations(obj)
        text, given = annotations.get(keys.AUTHOR), annotations.get(keys.AUTHOR_SIGNATURE)
        if text is None or given is None:
            return None

        time, _dot, signature = given.rpartition(".")
        wanted = self._sign(obj, objects.namespace(obj), text, *([time] if time else []))
        if not hmac.compare_digest(signature.encode(), wanted.encode()):
            return None

        if not self._was_made_with(obj, time):
            return None

        try:
            return msgspec.json.decode(text, type=Author)
        except (msgspec.MsgspecError, RecursionError):
            return None

    def _was_made_with(self, obj: Object, time: str) -> bool:
        """Tell whether an object was created when its signature was made, at that Unix time."""
        created = objects.parse_timestamp(objects.metadata(obj).get("creationTimestamp") or "")
        if created is None:
            return False

        if not time:
            return created < self._timed_since()

        return -_SKEW <= created - datetime.fromtimestamp(int(time), UTC) <= _SLOWEST

    def _sign(self, obj: Object, namespace: str, text: str, *time: str) -> str:
        metadata = objects.metadata(obj)
        # An object that is being created may have no name yet, but what it is generated from.
        name = metadata.get("generateName") or metadata.get("name") or ""
        parts = msgspec.json.encode(
            [_PURPOSE, str(obj.get("kind", "")), namespace, name, text, *time]
        )
        return base64.b64encode(hmac.digest(self._key(), parts, hashlib.sha256)).decode()
