"""Builds and serves pages that show what runs where, for `vnode dashboard` and for the agent.

`live_model` reads the stores of whoever serves the pages, and makes a `view_model` of them: their
state at one moment, with the `stages` of pods, the `troubles` that need attention, and the recent
`changes`. From that, pure functions build pages: `overview` (with the drawing of `graph`),
`pods_page`, `pod_page`, `target_page`, `policies_page` and `search_page`, in the frame of `page`,
with `tables` of `markup`, which escapes all text. `site` serves them and notifies browsers of
changes; `auth` admits callers where the agent serves the pages. Nothing here writes to a cluster.
"""
