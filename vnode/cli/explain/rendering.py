"""Renders a story as text for people, or as an object for programs. Pure but for the colours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from vnode.api import enumeration, objects, visible
from vnode.api.objects import Object
from vnode.cli import terminal, wrapping
from vnode.insight import status_text
from vnode.insight.story import Story
from vnode.insight.story_lines import Line
from vnode.insight.verdicts import PodState, Verdict

_AGO: Final = 10  # columns for the age of a line
_NAMED: Final = 5  # pods that stand alike
_INDENT: Final = "  "
_NUMBERS: Final = re.compile(r"\b\d+(?= (restarts|times))|\b(\d+[smhdy])+\b")
"""What differs between pods that stand alike: ages, and how often a container was restarted."""


def as_text(story: Story, now: datetime, width: int = 100) -> str:
    """Render the chapters, then the present state, then what to do.

    The present state is wrapped on a terminal only: elsewhere, scripts look for it. Cures are one
    line each, which a terminal wraps: they have commands to copy.
    """
    verdict = story.verdict
    lines = [terminal.styled(f"Pod {story.pod}: {story.status}", bold=True)]
    for chapter in story.chapters:
        lines += ["", terminal.styled(chapter.title, bold=True)]
        for line in chapter.lines:
            lines += _wrapped(line, now, width)

    lines += ["", terminal.styled("Now", bold=True)]
    lines += _conclusion(verdict)
    if verdict.cures:
        lines += ["", terminal.styled("What to do", bold=True), *_cures(verdict)]

    return "\n".join(lines)


def as_summary(stories: Sequence[Story], notes: Sequence[str]) -> str:
    """Render how several pods stand, those that stand alike together, and what to do.

    Of those the first is told: ages and restarts may differ, and commands name each its own.
    """
    groups: dict[tuple[PodState, str], list[Story]] = {}
    for story in stories:
        verdict = story.verdict
        groups.setdefault((verdict.state, _NUMBERS.sub("", verdict.text)), []).append(story)

    lines = []
    for alike in sorted(groups.values(), key=lambda found: found[0].verdict.state.is_good):
        verdict, names = alike[0].verdict, [story.pod.partition("/")[2] for story in alike]
        count = f"{len(names)} pods: " if len(names) > 1 else ""
        lines.append(terminal.styled(f"{count}{enumeration.some(names, _NAMED)}", bold=True))
        lines += [*_conclusion(verdict), *_cures(verdict), ""]

    lines += [line for note in notes for line in wrapping.wrapped(note, terminal.width())]
    if any(not story.verdict.state.is_good for story in stories):
        lines.append("vnode explain NAME tells the whole story of a pod")

    return "\n".join(lines).rstrip("\n")


def _conclusion(verdict: Verdict) -> list[str]:
    colour = terminal.GOOD if verdict.state.is_good else terminal.BAD
    text = f"{verdict.state.value}: {verdict.text}"
    lines = wrapping.wrapped(text, terminal.width(), len(_INDENT))
    return [_INDENT + terminal.styled(line, colour) for line in lines]


def _cures(verdict: Verdict) -> list[str]:
    return [f"  - {visible.line(cure)}" for cure in verdict.cures]


def _wrapped(line: Line, now: datetime, width: int) -> list[str]:
    ago = status_text.age(line.at, now) if objects.parse_timestamp(line.at) else ""
    first = f"  {ago + ' ago' if ago else '':<{_AGO}} "
    return wrapping.hanging(first, line.text, width)


def as_object(story: Story) -> Object:
    """Convert the story to the object of `-o json` and `-o yaml`."""
    return {
        "apiVersion": "vnode.dev/v1alpha1",
        "kind": "PodStory",
        "pod": story.pod,
        "chapters": [
            {
                "title": chapter.title,
                "lines": [
                    {"text": line.text, **({"time": line.at} if line.at else {})}
                    for line in chapter.lines
                ],
            }
            for chapter in story.chapters
        ],
        "state": story.verdict.state.value,
        "message": story.verdict.text,
        "cures": list(story.verdict.cures),
    }
