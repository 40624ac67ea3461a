from .deep import one

steps = one
