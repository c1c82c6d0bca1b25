"""Reads a list page by page, from one consistent snapshot, within bounds.

Objects may be large: 500 of the largest that etcd takes have 750 MB. A page out of bounds is
therefore asked for again with fewer objects, down to one, which always fits; after small pages
they become more again. All pages together are bounded in number and, if the caller says so, in
size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vnode.api import errors
from vnode.api.kinds import Kind
from vnode.api.objects import Objects
from vnode.kube import answer_limits, decoding
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.decoding import Page
from vnode.kube.transport import Transport

PAGE: Final = 500  # objects that a list request asks for, as client-go's pager does
MOST_PAGES: Final = 1000  # of one list; no cluster has more, so such a list would never end
_FEWER: Final = 4  # a page that is too large is asked for with so many times fewer objects
_MORE: Final = 2  # after one that used less than a fourth of its bound, twice as many follow
_SPARE: Final = 4


class ListReader:
    """Reads one list of a kind; `limit` bounds all its pages together."""

    def __init__(
        self, transport: Transport, kind: Kind, *, accept: str, limit: AnswerLimit | None = None
    ) -> None:
        self._transport = transport
        self._kind = kind
        self._accept = accept
        self._limit = limit
        self._count = PAGE  # objects that the next request asks for
        self._size = 0  # bytes of all pages so far
        self._values = 0

    async def read(self, path: str, query: Mapping[str, str]) -> tuple[Objects, str]:
        """Return all objects and the resource version of the list; `query` has the selectors.

        Gone if the snapshot expires on the way; TooLarge if all pages together, or a page with a
        single object, are out of bounds; Unreachable if there are more than MOST_PAGES.
        """
        items: Objects = []
        token = ""
        for _ in range(MOST_PAGES):
            page = await self._page(path, {**query, **({"continue": token} if token else {})})
            items += page.items
            token = page.token
            if not token:
                return items, page.version

        raise errors.Unreachable(self._text(f"has no end (over {MOST_PAGES} pages)"))

    async def version(self, path: str) -> str:
        """Return the resource version of the list, of which one object is read."""
        self._count = 1
        version = (await self._page(path, {})).version
        if not version:
            raise errors.Unreachable(self._text("has no version"))

        return version

    async def _page(self, path: str, query: Mapping[str, str]) -> Page:
        """Read the next page, with as many objects as fit."""
        bound = answer_limits.of_page(self._kind)
        while True:
            try:
                payload = await self._transport.payload(
                    path,
                    query={**query, "limit": str(self._count)},
                    accept=self._accept,
                    limit=bound.size,
                )
                page = await decoding.decode_page(payload, bound)
            except errors.TooLarge:
                if self._count == 1 or not answer_limits.is_paged(self._kind):
                    raise

                self._count = max(1, self._count // _FEWER)
                continue

            if page is None:
                name = self._transport.name
                raise errors.Unreachable(f"{name}: the answer is no list of {self._kind.plural}")

            self._add(len(payload), page.values)
            if len(payload) < bound.size // _SPARE and page.values < bound.values // _SPARE:
                self._count = min(PAGE, self._count * _MORE)

            return page

    def _add(self, size: int, values: int) -> None:
        """Count a page; TooLarge if all are out of bounds now."""
        self._size += size
        self._values += values
        if self._limit is None:
            return

        if self._size > self._limit.size:
            raise errors.TooLarge(self._text(f"has more than {self._limit.size} bytes"))

        if self._values > self._limit.values:
            raise errors.TooLarge(self._text(f"has more than {self._limit.values} values"))

    def _text(self, problem: str) -> str:
        return f"{self._transport.name}: a list of {self._kind.plural} {problem}"
