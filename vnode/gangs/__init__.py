"""Gangs: pods that start together in one target, or not at all. Pure, no I/O.

`membership` reads which gang a pod is of, `pod_groups` how many of it start together, `gang` and
`table` hold what is known of gangs, `deciding` says what is next, `room` whether a target has room
for one. `vnode.pods.source` acts on that, and the plugin Gangs holds pods until theirs is complete.
"""
