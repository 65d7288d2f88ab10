"""Titles of the sections of the report about searches, by method."""

PANELS = {
    "rf-agent": ["Tree"],
    "forge": ["Pool"],
    "map-elites": ["Map"],
}


def panels_in(page: str) -> list[str]:
    """Titles of such sections in a report."""
    every = dict.fromkeys(title for titles in PANELS.values() for title in titles)
    return [title for title in every if f">{title}<" in page]
