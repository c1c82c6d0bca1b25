"""Defines `vnode get`: prints targets, virtual nodes, proxy pods and sources, as kubectl does."""
