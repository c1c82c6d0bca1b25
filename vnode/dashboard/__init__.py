"""The dashboard: pages that show what runs where, live, for `vnode dashboard` and for the agent.

`sight` is what is looked at (the stores of whoever serves it) and `board` what is seen at one
moment. From a board, pure functions build pages: `overview`, `listing`, `telling`, with `graph` for
the drawing, in the frame of `page`, all out of `markup`, which escapes whatever is text. `site`
serves them, and tells browsers when to look again; `door` keeps strangers out where the agent
serves it. Nothing here writes to a cluster.
"""
