"""The frame of every page: head, heading, navigation; and the links between pages. Pure.

What is inside of `live` is what the script replaces when something has changed, so no form is.
Without the script the page asks for itself again every ten seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from vnode.dashboard.markup import Content, Markup, document, tag

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing from elsewhere, nothing inline, in nobody's frame."""

_WITHOUT_SCRIPT: Final = "10"  # seconds until the page is asked for again
_LIVE: Final = "live"


class Paths:
    """Where the pages are, below `base`, which has no slash at its end."""

    def __init__(self, base: str) -> None:
        self._base = base

    @property
    def overview(self) -> str:
        """The first page."""
        return f"{self._base}/"

    def pods(self, **filters: str) -> str:
        """The list of pods, with what its form would send."""
        given = {name: value for name, value in filters.items() if value}
        return f"{self._base}/pods{_query(given)}"

    def pod(self, namespace: str, name: str) -> str:
        """The story of one pod."""
        return f"{self._base}/pods/{_quoted(namespace)}/{_quoted(name)}"

    def events(self, pod: str = "") -> str:
        """The stream that says when to look again."""
        return f"{self._base}/events{_query({'pod': pod} if pod else {})}"

    def asset(self, name: str) -> str:
        """A file beside the pages."""
        return f"{self._base}/{name}"


def _quoted(part: str) -> str:
    return quote(part, safe="", errors="replace")


def _query(given: Mapping[str, str]) -> str:
    return f"?{urlencode(given, errors='replace')}" if given else ""


def frame(
    paths: Paths,
    title: str,
    live: Markup,
    *,
    cluster: str,
    now: datetime,
    here: str,
    above: Content = None,
    pod: str = "",
) -> bytes:
    """A whole page. `above` stands over what is live; `here` is the page's own place in the menu,
    `pod` the key of the pod that it is about."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", f"{title} · {cluster} · vnode"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href=paths.asset("icon.svg"), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=paths.asset("style.css")),
        tag("script", src=paths.asset("live.js"), defer=True),
        tag(
            "noscript",
            tag("meta", http_equiv="refresh", content=_WITHOUT_SCRIPT),
        ),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        _heading(paths, cluster, now, here),
        tag(
            "main",
            tag("h1", title),
            above,
            tag("div", live, id=_LIVE),
            id="content",
            tabindex="-1",
        ),
        data_events=paths.events(pod),
    )
    return document(head, body, lang="en")


def _heading(paths: Paths, cluster: str, now: datetime, here: str) -> Markup:
    return tag(
        "header",
        tag(
            "a",
            tag("span", "vnode", class_="brand"),
            tag("span", cluster, class_="cluster"),
            href=paths.overview,
            aria_label=f"vnode of cluster {cluster}: overview",
        ),
        tag(
            "nav",
            *(
                tag("a", word, href=href, aria_current="page" if word == here else None)
                for word, href in (("Overview", paths.overview), ("Pods", paths.pods()))
            ),
            aria_label="Pages",
        ),
        tag(
            "p",
            tag("span", id="pulse", data_state="still"),
            tag("time", f"{now:%H:%M:%S} UTC", id="clock", datetime=f"{now:%Y-%m-%dT%H:%M:%SZ}"),
            class_="pulse",
        ),
    )


def badge(word: str, tone: str) -> Markup:
    """A word on a coloured ground; `tone` is good, busy, bad, or the name of a stage."""
    return tag("span", word, class_="badge", data_tone=tone)


def empty(text: str, *more: Content) -> Markup:
    """Where there is nothing to show."""
    return tag("p", text, *more, class_="empty")


def notices(texts: tuple[str, ...]) -> Content:
    """What could not be read, over everything else."""
    if not texts:
        return None

    return tag("ul", *(tag("li", text) for text in texts), class_="notices", role="status")
