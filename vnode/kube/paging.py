"""Reads a list page by page, from one consistent snapshot, within bounds.

Objects may be large: 500 of the largest that etcd takes have 750 MB. A page out of bounds is
therefore asked for again with fewer objects, down to one; after small pages they become more again.
One object that is out of bounds by itself is left out: others must be read, whoever made it. All
pages together are bounded in number and, if the caller says so, in size.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from vnode.api import errors, objects, shapes
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube import answer_limits, decoding
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.decoding import Kept, Page
from vnode.kube.transport import JSON, METADATA_LIST, Transport
from vnode.telemetry import metrics

PAGE: Final = 500  # objects that a list request asks for, as client-go's pager does
MOST_PAGES: Final = 1000  # of one list; no cluster has more, so such a list would never end
_FEWER: Final = 4  # a page that is too large is asked for with so many times fewer objects
_MORE: Final = 2  # after one that used less than a fourth of its bound, twice as many follow
_SPARE: Final = 4

TOO_LARGE: Final = "%s has %s/%s, which is too large to be read: it counts as not there"

log = logging.getLogger(__name__)


class ListReader:
    """Reads one list of a kind; `limit` bounds all its pages together, as they are sent.

    It has of each item what `kept` makes of it.
    """

    def __init__(
        self,
        transport: Transport,
        kind: Kind,
        *,
        accept: str,
        limit: AnswerLimit | None = None,
        kept: Kept = decoding.whole,
    ) -> None:
        self._transport = transport
        self._kind = kind
        self._accept = accept
        self._limit = limit
        self._kept = kept
        self._count = PAGE  # objects that the next request asks for
        self._size = 0  # bytes of all pages so far
        self._values = 0
        self._is_logged = False  # whether an object was that was left out

    async def read(self, path: str, query: Mapping[str, str]) -> tuple[Objects, str]:
        """Return what is kept of all, and the resource version of the list; `query` has selectors.

        Gone if the snapshot expires on the way; TooLarge if all pages together are out of bounds;
        Unreachable if there are more than MOST_PAGES.
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
                page = await decoding.decode_page(payload, bound, self._kept)
            except errors.TooLarge:
                if not answer_limits.is_paged(self._kind):
                    raise

                if self._count == 1:
                    return await self._page_of_metadata(path, query)

                self._count = max(1, self._count // _FEWER)
                continue

            if page is None:
                name = self._transport.name
                raise errors.Unreachable(f"{name}: the answer is no list of {self._kind.plural}")

            self._add(len(payload), page.values)
            if len(payload) < bound.size // _SPARE and page.values < bound.values // _SPARE:
                self._count = min(PAGE, self._count * _MORE)

            return page

    async def _page_of_metadata(self, path: str, query: Mapping[str, str]) -> Page:
        """Read a page of one object by its metadata, and then the object, if it fits.

        It need not be the one that did not fit: another may have come before it.
        """
        bound = answer_limits.of_page(self._kind)
        payload = await self._transport.payload(
            path, query={**query, "limit": "1"}, accept=METADATA_LIST, limit=bound.size
        )
        page = await decoding.decode_page(payload, bound)
        if page is None:
            raise errors.Unreachable(self._text("is none"))

        self._add(bound.size, page.values)  # that much was read for nothing
        if self._accept != JSON:
            raise errors.TooLarge(self._text("has an object whose metadata are too large"))

        page.items = [found for each in page.items if (found := await self._read(each))]
        return page

    async def _read(self, metadata: Object) -> Object | None:
        """Read an object whose metadata are known; None if too large, or gone, or not kept."""
        if not shapes.is_object(metadata):
            return None

        name, namespace = objects.name(metadata), objects.namespace(metadata) or None
        try:
            answer = await self._transport.request("GET", self._kind.path(namespace, name))
        except errors.TooLarge:
            self._leave_out(metadata)
            return None
        except errors.NotFound:
            return None

        return self._kept(answer) if isinstance(answer, dict) else None

    def _leave_out(self, metadata: Object) -> None:
        cluster, plural = self._transport.name, self._kind.plural
        metrics.MALFORMED_OBJECTS.labels(cluster, plural).inc()
        if not self._is_logged:
            self._is_logged = True
            log.warning(TOO_LARGE, cluster, plural, objects.key(metadata))

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
