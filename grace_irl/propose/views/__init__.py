"""Views, which write states for prompts: one for each state kind, found by `view_of`."""

from grace_irl.propose.views.registry import VIEWS, view_of
from grace_irl.propose.views.view import View

__all__ = ["VIEWS", "View", "view_of"]
