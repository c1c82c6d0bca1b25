"""`vnode disconnect` and `vnode uninstall`: delete what `connect` and `install` created.

Both work with or without an agent, and also when the other cluster is unreachable. For everything
that they cannot delete, they print why, and the command that deletes it later. `source_side` and
`target_side` hold the steps that both commands share.
"""
