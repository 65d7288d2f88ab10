"""Views, which write states as text for prompts. Each state kind has its own view, which `view_of` makes."""

from grace_irl.propose.views.registry import VIEWS, view_of
from grace_irl.propose.views.view import View

__all__ = ["VIEWS", "View", "view_of"]
