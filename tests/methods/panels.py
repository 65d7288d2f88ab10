"""Titles of the sections of the report about searches, by method."""

PANELS = {
    "rf-agent": ["Tree"],
    "forge": ["Pool"],
    "map-elites": ["Map"],
    "eureka": ["Scores by round"],
    "revolve": ["Scores by generation"],
}


def panels_in(page: str) -> list[str]:
    """Titles of such sections in a report."""
    return [title for titles in PANELS.values() for title in titles if f">{title}<" in page]
