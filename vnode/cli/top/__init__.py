"""`vnode top`: what targets have and pods ask for, and what they use where metrics are served."""
