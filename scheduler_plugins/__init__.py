"""Scheduler plugins that come with vnode: one file each, using `vnode.scheduling` and `vnode.api`.

`defaults` has all of them, and which take part by default, in which order and with what weight.
"""
