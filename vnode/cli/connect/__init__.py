"""`vnode connect`: lets the pods of one cluster, the source, run in another, the target.

`command` has the flags, `connect` decides from them what is to be there in the end, `wanted` builds
it, pure, and `connector` makes it so, step by step.
"""
