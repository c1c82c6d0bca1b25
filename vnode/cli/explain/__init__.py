"""Defines `vnode explain pod NAME`: tells what happened to a pod, why, and what to do.

`vnode.insight` builds the story, which the dashboard shows as well; `rendering` prints it.
"""
