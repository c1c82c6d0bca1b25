"""References that override policies introduce: what a pod needs in one target only.

They are known when a candidate is created, and afterwards by the record on its chaperon, so that a
later leader knows them too. Chaperon and pod may be seen in either order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.following import references
from vnode.following.reference_index import ReferenceIndex
from vnode.following.references import Ref
from vnode.following.token_secrets import Holders
from vnode.runtime.link import Link
from vnode.runtime.links import Links

Introduced = Callable[[Object, Object, Link], Iterable[tuple[str, str]]]
"""Returns what the delegate of a pod, with that chaperon there, refers to because of overrides: the
plurals of kinds, and names. Only what this cluster itself has recorded counts."""

_KINDS: Final = {
    kind.plural: kind
    for kind in (
        kinds.CONFIG_MAPS,
        kinds.SECRETS,
        kinds.CLAIMS,
        kinds.SERVICE_ACCOUNTS,
        kinds.RESOURCE_CLAIMS,
        kinds.RESOURCE_CLAIM_TEMPLATES,
    )
}


class IntroducedReferences:
    """Tells the index of them. `find_pod` returns the proxy pod of a key, as informers have it."""

    def __init__(
        self,
        index: ReferenceIndex,
        links: Links,
        find_pod: Callable[[str], Object | None],
        introduced: Introduced,
    ) -> None:
        self._index = index
        self._links = links
        self._find_pod = find_pod
        self._introduced = introduced
        self._seen = False  # a record on some chaperon; most sources have none

    def announce(self, pod: Object, link: Link, needed: Iterable[Ref]) -> set[Ref]:
        """Record, and return, what a candidate needs and the pod itself does not."""
        proxy = self._present(pod)
        if proxy is None:
            return set()

        refs = set(needed) - set(references.of(proxy))
        self._index.introduce(proxy, link.node_name, refs)
        return refs

    def find(self, pod: Object) -> set[Ref]:
        """Return what a pod as overrides have it refers to, and the pod itself does not."""
        proxy = self._present(pod)
        return set() if proxy is None else set(references.of(pod)) - set(references.of(proxy))

    def _present(self, pod: Object) -> Object | None:
        """Return a pod as informers have it; None if they have another, or none."""
        proxy = self._find_pod(objects.key(pod))
        return proxy if proxy is not None and objects.uid(proxy) == objects.uid(pod) else None

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Look for chaperons of a pod that is new here; a subscriber of informers."""
        if not self._seen or new is None or old is not None:
            return

        for link in self._links.covering(objects.namespace(new)):
            chaperon = link.candidate(objects.key(new), objects.uid(new))
            if chaperon is not None and keys.OVERRIDES in objects.annotations(chaperon):
                self._take_up(new, link, chaperon)

    def on_chaperon(self, link: Link, old: Object | None, chaperon: Object) -> None:
        """Look at a chaperon that is new, or whose record has changed."""
        record = objects.annotations(chaperon).get(keys.OVERRIDES)
        if record is None or (old and objects.annotations(old).get(keys.OVERRIDES) == record):
            return

        self._seen = True
        proxy = self._find_pod(parent_key(chaperon))
        if proxy is not None:
            self._take_up(proxy, link, chaperon)

    def release(self, pod_key: str, uid: str, link: Link) -> None:
        """Note that the candidate of exactly that pod in a target is deleted."""
        proxy = self._find_pod(pod_key)
        if proxy is not None and objects.uid(proxy) == uid:
            self._index.introduce(proxy, link.node_name, ())

    def _take_up(self, proxy: Object, link: Link, chaperon: Object) -> None:
        if not link.is_candidate(chaperon, objects.key(proxy), objects.uid(proxy)):
            return

        refs = [
            Ref(_KINDS[plural], objects.namespace(proxy), name)
            for plural, name in self._introduced(proxy, chaperon, link)
            if plural in _KINDS
        ]
        self._index.introduce(proxy, link.node_name, refs)


def refuse_tokens(holders: Holders, introduced: Collection[Ref]) -> None:
    """Raise ConfigError for a token that the pod itself does not have: nobody would renew it."""
    for ref in introduced:
        if ref.kind is kinds.SECRETS and ref.name in holders:
            raise ConfigError(
                f"{ref} is the token of a service account, which an override policy cannot give a "
                "pod: have the pod itself refer to it"
            )
