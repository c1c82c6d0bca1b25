"""`vnode explain pod NAME`: what happened to a pod, in order, why it is as it is, and what to do.

The story itself is `vnode.insight`'s, which the dashboard tells as well; `rendering` prints it.
"""
