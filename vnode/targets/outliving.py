"""Decides how long a connection outlives the Secret or the ClusterProfile that it was made of.

Who deletes a Target deletes its Secret as well, in any order, and who deletes a namespace has no
say in the order. Without a connection nobody could clean up behind the Target: copies of Secrets
would stay in a cluster to which nobody here has access any more. So a connection waits for its
Target where the Target, or its namespace, is being deleted; and for half a minute in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.targets.profiles import refusals
from vnode.targets.profiles.refusals import ProfileRefused
from vnode.targets.secrets import SecretGone

LIFE: Final = 30.0
"""Seconds that a connection waits for the end of its Target, if nothing says that it comes."""
_RECHECK: Final = 30.0  # seconds; the deletion of the Target wakes its key before

_GONE: Final = (refusals.NOT_FOUND, refusals.NOT_SERVED)


class OutlivingConnections:
    """Remembers since when connections have lost what they were made of.

    `is_ending` tells whether a namespace is being deleted.
    """

    def __init__(self, is_ending: Callable[[str], bool], clock: Clock) -> None:
        self._is_ending = is_ending
        self._clock = clock
        self._since: dict[TargetKey, float] = {}  # monotonic

    def wait(self, key: TargetKey, target: Object, error: ConfigError) -> float:
        """Return the seconds for which the connection of a Target stays, which can be read no more
        for that reason; 0 or less if it ends now."""
        if not is_gone(error):
            self.forget(key)
            return 0.0

        now = self._clock.monotonic()
        left = self._since.setdefault(key, now) + LIFE - now
        return _RECHECK if self.is_ending(target) else left

    def is_ending(self, target: Object) -> bool:
        """Tell whether a Target is being deleted, or is about to be: it is left in use until then,
        for its pods to be followed to their end."""
        namespace = objects.namespace(target)
        return objects.is_terminating(target) or bool(namespace and self._is_ending(namespace))

    def forget(self, key: TargetKey) -> None:
        """Drop what is known of a Target that can be read, or is gone."""
        self._since.pop(key, None)


def is_gone(error: ConfigError) -> bool:
    """Tell whether an error says that a Secret or profile does not exist, not that it is wrong."""
    if isinstance(error, ProfileRefused):
        return error.reason in _GONE

    return isinstance(error, SecretGone)
