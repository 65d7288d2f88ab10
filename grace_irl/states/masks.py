"""A check for masked arrays of NumPy. No program sees a mask, so values under a mask would pass for data."""

from __future__ import annotations

from typing import Any

import numpy as np

from grace_irl.errors import InputError


def require_unmasked(values: Any, where: str) -> None:
    """Refuse masked values in an array, or in one of the arrays of a list.

    Raises:
        InputError: an array has masked values.
    """
    for each in values if isinstance(values, list | tuple) else (values,):
        if isinstance(each, np.ma.MaskedArray) and np.ma.is_masked(each):
            raise InputError(
                f"{where}: masked values; expected numbers in their place: drop the episode, or fill them (.filled)"
            )
