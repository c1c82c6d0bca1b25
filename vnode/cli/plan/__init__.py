"""Defines `vnode plan`: tells what a placement policy would do now, without applying anything.

`reading` reads the file and the cluster, `planning` compares each workload with its plan, and
`rendering` prints that. The plan is the agent's own: `vnode.placement` and
`vnode.planning` decode, match, count and plan for both.
"""
