"""Makes the frame of every page (head, heading, navigation) and the links between pages. Pure.

The script replaces the contents of `live` when something has changed, so no form is in there.
Without the script the page reloads every ten seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from vnode.api import objects
from vnode.dashboard.markup import Content, Markup, document, tag
from vnode.insight import status_text

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Forbids resources of other origins, inline code, and framing by other pages."""

_RELOAD_AFTER: Final = "10"  # seconds, without the script
_LIVE: Final = "live"


class Paths:
    """The paths of the pages below `base`, which does not end with a slash."""

    def __init__(self, base: str) -> None:
        self._base = base

    @property
    def overview(self) -> str:
        """The first page."""
        return f"{self._base}/"

    def pods(self, **filters: str) -> str:
        """Return the path of the list of pods, with the query that its form would send."""
        given = {name: value for name, value in filters.items() if value}
        return f"{self._base}/pods{_query(given)}"

    def target(self, key: str) -> str:
        """Return the path of the page of one Target, by its key."""
        return f"{self._base}/targets/{'/'.join(map(_quoted, key.split('/', 1)))}"

    def search(self, text: str = "") -> str:
        """Return the path of what is found by a text, or that of the form."""
        return f"{self._base}/search{_query({'q': text} if text else {})}"

    @property
    def policies(self) -> str:
        """The page of policies."""
        return f"{self._base}/policies"

    def pod(self, namespace: str, name: str) -> str:
        """Return the path of the page of one pod."""
        return f"{self._base}/pods/{_quoted(namespace)}/{_quoted(name)}"

    def events(self, pod: str = "") -> str:
        """Return the path of the stream of changes, of all pods or of one."""
        return f"{self._base}/events{_query({'pod': pod} if pod else {})}"

    def asset(self, name: str) -> str:
        """Return the path of a static file."""
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
    sought: str = "",
) -> bytes:
    """Make a whole page.

    `above` stands over the live part; `here` is the page's own entry in the menu, `pod` the key of
    the pod that it is about, and `sought` the text in the field of the search.
    """
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
            tag("meta", http_equiv="refresh", content=_RELOAD_AFTER),
        ),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        _heading(paths, cluster, now, here, sought),
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


def _heading(paths: Paths, cluster: str, now: datetime, here: str, sought: str) -> Markup:
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
                tag("a", text, href=href, aria_current="page" if text == here else None)
                for text, href in (
                    ("Overview", paths.overview),
                    ("Pods", paths.pods()),
                    ("Policies", paths.policies),
                )
            ),
            aria_label="Pages",
        ),
        _search(paths, sought),
        tag(
            "p",
            tag("span", id="pulse", data_state="still"),
            tag("time", f"{now:%H:%M:%S} UTC", id="clock", datetime=f"{now:%Y-%m-%dT%H:%M:%SZ}"),
            class_="pulse",
        ),
    )


def _search(paths: Paths, sought: str) -> Markup:
    """Make the form that finds things by name, on every page."""
    what = "Pods, targets, namespaces"
    field = tag("input", type="search", name="q", value=sought, placeholder=what, aria_label=what)
    button = tag("button", "Search", type="submit")
    return tag("form", field, button, action=paths.search(), role="search", class_="search")


def section(title: str, *content: Content) -> Markup:
    """Make a section with a heading, by which links reach it: `#` and its first word."""
    name = title.split(maxsplit=1)[0].lower()
    heading = tag("h2", title, id=name)
    return tag("section", heading, *content, class_="card", aria_labelledby=name)


def ago(since: str, now: datetime) -> Content:
    """Tell how long ago a moment was; return None if it is none."""
    if objects.parse_timestamp(since) is None:
        return None

    return tag("time", f"{status_text.age(since, now)} ago", datetime=since, title=since)


def badge(text: str, tone: str) -> Markup:
    """Put text on a coloured ground; `tone` is good, busy, bad, or the value of a stage."""
    return tag("span", text, class_="badge", data_tone=tone)


def empty(text: str, *more: Content) -> Markup:
    """Make the paragraph of a section that has nothing to show."""
    return tag("p", text, *more, class_="empty")


def notices(texts: tuple[str, ...]) -> Content:
    """List what could not be read, or return None if nothing failed."""
    if not texts:
        return None

    return tag("ul", *(tag("li", text) for text in texts), class_="notices", role="status")
