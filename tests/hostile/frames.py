"""Programs that look for the sandbox's own objects in the frames that call them."""

FIND = """
import sys
def find(*names):
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if type(value).__name__ in names:
                return value
        frame = frame.f_back
"""
"""The source of `find(*names)`: the innermost local variable of a caller whose type is called so, or None."""
