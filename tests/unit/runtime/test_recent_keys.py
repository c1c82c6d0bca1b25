"""Who else did something of late."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.runtime.recent_keys import RecentKeys

FOR = 10.0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 8)), max_size=20), st.floats(0, 12))
def test_another_one_is_known_as_if_all_were_remembered(notes, later):
    recent_keys, now, noted = RecentKeys[str](FOR), 0.0, []
    for key, passed in notes:
        now += passed
        recent_keys.note(key, now)
        noted.append((key, now))

    now += later
    for key in "abcd":
        recent = any(other != key and now - at < FOR for other, at in noted)
        assert recent_keys.has_another(key, now) == recent
