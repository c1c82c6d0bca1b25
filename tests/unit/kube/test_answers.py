from __future__ import annotations

import pytest

from vnode.kube import answers

SET = "Forbidden: field is immutable when `immutable` is set"
TYPE = 'Invalid value: "x/y": field is immutable'
ONCE = 'Invalid value: ["None"]: may not change once set'
CLAIM = "Forbidden: spec is immutable after creation except resources.requests\n@@ -1 +1 @@\n-1"


def refusal(*messages):
    return {
        "kind": "Status",
        "details": {"causes": [{"message": m, "field": "x"} for m in messages]},
    }


@pytest.mark.parametrize("messages", [(SET,), (SET, SET), (TYPE,), (ONCE,), (CLAIM,)])
def test_a_refusal_of_a_change_that_cannot_be_is_known(messages):
    assert answers.is_about_immutable(refusal(*messages))


@pytest.mark.parametrize(
    "messages",
    [
        (),
        ("Required value",),
        (TYPE, "Required value"),  # it would be refused as a new object, too
        ('Invalid value: "field is immutable": a valid config key must consist of',),
        ('Invalid value: "a: field is immutable: ": must be shorter',),
    ],
)
def test_what_would_be_refused_as_a_new_object_is_something_else(messages):
    assert not answers.is_about_immutable(refusal(*messages))


@pytest.mark.parametrize(
    "status", [{}, {"details": None}, {"details": {"causes": 1}}, {"details": {"causes": [None]}}]
)
def test_an_answer_of_another_form_says_nothing(status):
    assert not answers.is_about_immutable(status)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("3", 3.0), ("0.5", 0.5), (None, 1.0), ("", 1.0)),
        *(("0", 0.1), ("-7", 0.1), ("3600", 60.0), ("inf", 60.0), ("1e999", 60.0)),
        *(("nan", 1.0), ("soon", 1.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 1.0)),
    ],
)
def test_the_seconds_that_a_server_asks_for_are_bounded(text, seconds):
    assert answers._seconds(text) == seconds
