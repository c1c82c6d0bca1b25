"""What to do about an installation, in the words of all messages that advise it."""

from typing import Final

INSTALL: Final = "run vnode install, or install its Helm chart"
REPAIR: Final = "run vnode install again, or helm upgrade if it is a Helm release"
