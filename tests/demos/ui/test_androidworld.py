"""Elements are read back from the texts that AndroidWorld makes of them, whatever texts they hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.demos.memory import Memory
from grace_irl.demos.ui import androidworld, autodroid
from grace_irl.demos.ui.fields import attributes
from grace_irl.errors import InputError
from grace_irl.states.ui import markup
from grace_irl.states.ui.screen import Screen


@dataclass
class BoundingBox:
    """As in android_world/env/representation_utils.py."""

    x_min: float | int
    x_max: float | int
    y_min: float | int
    y_max: float | int


@dataclass
class UIElement:
    """As in android_world/env/representation_utils.py; the order is that of what it prints."""

    text: str | None = None
    content_description: str | None = None
    class_name: str | None = None
    bbox: BoundingBox | None = None
    bbox_pixels: BoundingBox | None = None
    hint_text: str | None = None
    is_checked: bool | None = None
    is_checkable: bool | None = None
    is_clickable: bool | None = None
    is_editable: bool | None = None
    is_scrollable: bool | None = None
    package_name: str | None = None
    resource_id: str | None = None


def described(element: UIElement, index: int) -> str:
    """What AndroidWorld's agents are shown of an element (`_generate_ui_element_description`): nothing is escaped."""
    out = f'UI element {index}: {{"index": {index}, '
    for name in ("text", "content_description", "hint_text"):
        if value := getattr(element, name):
            out += f'"{name}": "{value}", '
    for name in ("is_clickable", "is_editable", "is_scrollable", "is_checked"):
        if name != "is_scrollable" or element.is_scrollable:
            out += f'"{name}": {"True" if getattr(element, name) else "False"}, '
    return out[:-2] + "}"


NUMBERS = st.integers(-9999, 9999) | st.floats(-9999, 9999, allow_nan=False)
BOXES = st.builds(BoundingBox, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
TEXTS = st.none() | st.text()
FLAGS = st.none() | st.booleans()
ELEMENTS = st.builds(
    UIElement, TEXTS, TEXTS, TEXTS, st.none() | BOXES, BOXES, TEXTS, FLAGS, FLAGS, FLAGS, FLAGS, FLAGS, TEXTS, TEXTS
)


@given(st.lists(ELEMENTS, min_size=1, max_size=4), st.booleans())
def test_what_python_prints_is_read_back(elements: list[UIElement], as_list: bool) -> None:
    printed = repr(elements) if as_list else "\n".join(map(repr, elements))
    assert androidworld.read_elements(printed, "a.txt") == [
        attributes("a.txt", asdict(element)) for element in elements
    ]


# No text that looks like what may follow a text: of such, nobody can say where it ends.
SHOWN = st.text().filter(
    lambda text: not any(f', "{name}": "' in text for name in ("content_description", "hint_text"))
)


@given(SHOWN, SHOWN, SHOWN, st.lists(st.booleans(), min_size=4, max_size=4), st.integers(0, 999))
def test_what_agents_are_shown_is_read_back(
    text: str, description: str, hint: str, flags: list[bool], index: int
) -> None:
    element = UIElement(text, description, hint_text=hint)
    element.is_clickable, element.is_editable, element.is_scrollable, element.is_checked = flags
    said = {name: value for name, value in asdict(element).items() if value not in ("", None)}
    if not element.is_scrollable:
        said.pop("is_scrollable", None)
    assert androidworld.read_description(described(element, index), "a.json") == said


def test_long_texts_that_are_nearly_elements_are_refused_at_once() -> None:
    """Each would take a careless pattern hours."""
    for text in (
        'UI element 0: {"index": 0' + ', "text": "a' * 200_000,
        'UI element 0: {"index": 0' + ', "is_clickable": True' * 200_000 + "}x}",
        'UI element 0: {"index": 0, "text": "' + '", "is_checked": ' * 200_000 + "}",
    ):
        with pytest.raises(InputError):
            androidworld.read_description(text, "a.json")
    for text in (
        "UIElement(" + "a=1, " * 200_000,
        "UIElement(text='" + "\\'" * 500_000,
        "UIElement(text='a', bbox=BoundingBox(" + "x_min=1, " * 200_000,
        " ,[]" * 1_000_000,
    ):
        with pytest.raises(InputError):
            androidworld.read_elements(text, "a.txt")
    for text in ("<p id=0" + " text='" * 500_000, "<p id=0 text='" + "'>" * 500_000, "<p id=0>" * 500_000):
        with pytest.raises(InputError):
            autodroid.read_elements(text, "a.yaml")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["button", "checkbox", "input", "p"]),
            st.text(st.characters(exclude_characters="<>'", codec="utf-8")),
            st.text(st.characters(exclude_characters="<>'", codec="utf-8")),
            st.booleans(),
        ),
        max_size=5,
    )
)
def test_records_are_read_back(elements: list[tuple[str, str, str, bool]]) -> None:
    state = "\n".join(
        f"<{tag} id={index} checked={checked} text='{described}'>{text.replace(chr(10), '<br>')}</{tag}>"
        for index, (tag, text, described, checked) in enumerate(elements)
    )
    found = autodroid.read_elements(state, "a.yaml")
    assert [(each["text"], each["content-desc"], each["checked"], each["index"]) for each in found] == [
        (text, described, checked, str(index)) for index, (_, text, described, checked) in enumerate(elements)
    ]
    screen = Screen.parse(androidworld.flat(found, "a.yaml", Memory()))
    assert [node.text for node in screen.nodes] == [markup.rinse(text) for _, text, _, _ in elements]
