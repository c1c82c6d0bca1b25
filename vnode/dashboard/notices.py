"""Says what the pages do not show: what may not be read, and Targets without a link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vnode.api.errors import Denied, NotFound
from vnode.kube.informer import Informer
from vnode.runtime.links import Links
from vnode.targets import model


def of_informers(informers: Iterable[Informer]) -> Iterator[str]:
    """Yield which kinds cannot be read."""
    for informer in informers:
        yield from _failure(informer, f"{informer.kind.kind}s")


def of_links(targets: Iterable[Informer], links: Links) -> Iterator[str]:
    """Yield which Targets have no link."""
    for informer in targets:
        for target in informer.store.values():
            key = model.key_of(target)
            if links.get(key.node_name) is None:
                yield f"{key} is not connected from here: candidates there are not shown"


def of_policies(informers: Iterable[Informer]) -> Iterator[str]:
    """Yield which kinds of policies cannot be read, or are not there."""
    for informer in informers:
        kinds = f"{informer.kind.kind.removesuffix('y')}ies"
        if isinstance(informer.failure, NotFound):
            yield f"{kinds} are not known here: apply the CRDs of this version"
        else:
            yield from _failure(informer, kinds)


def _failure(informer: Informer, kinds: str) -> Iterator[str]:
    """Yield why objects of a kind are not shown, if so."""
    if isinstance(informer.failure, Denied):
        yield f"{kinds} are not shown: no right to read them"
    elif informer.failure is not None:
        yield f"{kinds} cannot be read now: {informer.failure}"
