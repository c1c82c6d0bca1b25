"""What the machinery of following (`follower`) asks about the kinds that it carries.

A family knows its originals in the source, who needs them where, and what a copy looks like; the
follower does the writing. All families are alike to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.runtime.links import Link
from vnode.runtime.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class Original:
    """What is known of an object of the source; `body` is all of it, where that is at hand.

    `marks` are `copies.marks` of the copy that it should have; None where that is not known.
    """

    uid: str
    version: str
    digest: str
    marks: str | None = None
    body: Object | None = None


class Family(Protocol):
    """Some kinds that follow pods for one reason."""

    carried: Sequence[Kind]
    setting: str
    """The field of the agent's configuration that turns it off."""

    async def open(self, tasks: Supervisor) -> None:
        """Begin, in `tasks`; return when `need` can be relied upon."""

    def serves(self, link: Link) -> bool:
        """The family goes to that target at all."""

    def need(self, key: Key, link: Link) -> Need:
        """Whether the object has to be in that target."""

    def on(self, node: str) -> list[Key]:
        """All that is wanted in one target."""

    async def original(self, ref: Ref, *, sure: bool) -> Original | None:
        """What is to follow; None if there is nothing.

        `sure` is for who deletes a copy because of that: then the API server itself is asked.
        """

    async def build(self, ref: Ref, original: Original, link: Link) -> Object | None:
        """The copy; None if the original has gone meanwhile."""

    def relaxed(self, body: Object) -> Object | None:
        """The same copy without what the target may have to choose itself; None if all is ours."""

    def update(self, body: Object, copy: Object) -> Object | None:
        """The copy as it should be, with what the target has chosen in the one that is there.

        None if that one can never be so.
        """

    def seen(self, key: Key) -> None:
        """A copy is, or is not, in the target: as it should be."""

    def trim(self, copy: Object) -> Object:
        """What is kept of a copy."""

    def same(self, ref: Ref, copy: Object, original: Original) -> bool:
        """A trimmed copy is what it should be, but for labels and annotations."""

    def replaces(self, copy: Object, original: Original) -> bool:
        """A trimmed copy of an earlier original of the name may become one of this original.

        Where it may not, it is left as it is.
        """

    def alike(self, other: Object, original: Original) -> bool:
        """Somebody else's object, trimmed, serves as well as a copy would."""

    def users(self, key: Key) -> Iterator[Object]:
        """References to the objects on which to say what is wrong."""


class Demand(Protocol):
    """Those who need objects of a family, for one reason."""

    def need(self, key: Key, link: Link) -> Need:
        """Whether the object has to be in that target."""

    def on(self, node: str) -> list[Key]:
        """All that is wanted in one target."""

    def about(self, key: Key) -> Iterator[Object]:
        """References to the objects on which to say what is wrong."""

    def in_namespace(self, namespace: str) -> bool:
        """Anything of that namespace may be needed somewhere."""
