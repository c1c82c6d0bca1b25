"""Builds the page of one pod: its state, what to do, and its story chapter by chapter. Pure."""

from __future__ import annotations

from datetime import datetime

from vnode.dashboard import page
from vnode.dashboard.markup import Content, Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.insight.story import Chapter, Story
from vnode.insight.story_lines import Line
from vnode.insight.verdicts import Verdict


def build(story: Story, paths: Paths, *, cluster: str, now: datetime) -> bytes:
    """Build the page."""
    live = join(
        [
            _now(story.status, story.verdict),
            tag(
                "section",
                tag("ol", *(_chapter(chapter, now) for chapter in story.chapters), class_="story"),
                class_="card",
                aria_label="What happened, in order",
            ),
        ]
    )
    return _framed(paths, story.pod, live, cluster, now)


def absent(key: str, why: str, paths: Paths, *, cluster: str, now: datetime) -> bytes:
    """Build the page of a pod that does not exist."""
    live = tag("section", page.empty(f"{why}. "), class_="card")
    return _framed(paths, key, live, cluster, now)


def _framed(paths: Paths, key: str, live: Markup, cluster: str, now: datetime) -> bytes:
    back = tag("p", tag("a", "All pods", href=paths.pods()), class_="back")
    return page.frame(paths, key, live, cluster=cluster, now=now, here="", above=back, pod=key)


def _now(status: str, verdict: Verdict) -> Markup:
    state, shown_status = verdict.state.value, tag("span", status, class_="status")
    tone = "good" if verdict.state.is_good else "bad"
    cures: Content = None
    if verdict.cures:
        cures = join(
            [
                tag("h3", "What to do"),
                tag("ul", *(tag("li", cure) for cure in verdict.cures)),
            ]
        )

    return tag(
        "section",
        tag("h2", page.badge(state, tone), None if status == state else shown_status),
        tag("p", verdict.text, class_="verdict"),
        cures,
        class_="card",
        aria_label="How it stands now",
    )


def _chapter(chapter: Chapter, now: datetime) -> Markup:
    return tag(
        "li",
        tag("h2", chapter.title),
        tag("ul", *(_line(line, now) for line in chapter.lines)),
    )


def _line(line: Line, now: datetime) -> Markup:
    ago = page.ago(line.at, now)
    return tag("li", tag("span", ago, class_="when"), tag("span", line.text))
