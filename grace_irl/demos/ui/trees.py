"""Reader for accessibility trees in JSON. A file holds one screen, as nested objects with the key `children`.

The tree may be the whole content of the file, or the value of a key in `ROOTS`. Nodes may use all field names of
`grace_irl.demos.ui.fields`. The tests use files from the tool Trailblaze.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lxml import etree

from grace_irl.contents import require_inside
from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import FileScreenshot, Screenshot, beside
from grace_irl.demos.ui.androidworld import history
from grace_irl.demos.ui.episode import EpisodeSource, ScreenEpisode, instruction_of
from grace_irl.demos.ui.fields import attributes
from grace_irl.demos.ui.texts import read_json
from grace_irl.errors import InputError
from grace_irl.states.ui import markup

ROOTS = ("trailblazeNodeTree", "viewHierarchy", "activity", "root", "tree", "hierarchy")
"""Keys that may hold the tree, in order of preference."""


def open_json(path: Path, memory: Memory) -> EpisodeSource:
    """Open a JSON file with one tree (an episode of one state) or with an AndroidWorld history.

    Args:
        path: the file.
        memory: memory limit of the set.

    Raises:
        InputError: neither a tree nor a history, or a file that cannot be used.
    """
    found = read_json(path, memory)
    if isinstance(found, list):
        del found
        return EpisodeSource(path, history(path, lambda: read_json(path, memory), memory))

    def screens() -> Iterator[str]:
        yield write_tree(read_json(path, memory), str(path), memory)

    tree(found, str(path))
    episode = ScreenEpisode(screens, instruction_of(found, path), screenshots=_screenshots(found, path))
    del found  # frees its memory before `EpisodeSource` reads the file again
    return EpisodeSource(path, episode)


def tree(found: object, where: str) -> Mapping[str, Any]:
    """The root node of the tree in the content of a file.

    Raises:
        InputError: no tree.
    """
    top = found
    while isinstance(top, Mapping):
        inner = next((top[key] for key in ROOTS if isinstance(top.get(key), Mapping)), None)
        if inner is None:
            break
        top = inner
    if not isinstance(top, Mapping) or not (isinstance(top.get("children"), list) or top is not found):
        raise InputError(
            f"{where}: no screen; expected a tree of nodes with 'children' (at the top, or under {ROOTS[0]!r} and "
            "the like), or the steps of a history"
        )
    return top


def write_tree(found: object, where: str, memory: Memory) -> str:
    """Write a tree as canonical XML, with children in the same order.

    Args:
        found: content of the file, with the tree.
        where: name of the file, for messages.
        memory: memory limit of the set.

    Raises:
        InputError: no tree, too many nodes, too deep nesting, a tree that needs more memory than the limit, or a node
            that `attributes` refuses.
    """
    root = markup.hierarchy()
    count = 0
    stack: list[tuple[Any, etree._Element, int]] = [(tree(found, where), root, 1)]
    while stack:
        node, parent, depth = stack.pop()
        count += 1
        if not isinstance(node, Mapping):
            raise InputError(f"{where}: a node is {reprlib.repr(node)}; expected an object")
        if depth >= markup.MAX_DEPTH:
            raise InputError(f"{where}: nodes nested deeper than {markup.MAX_DEPTH}; expected the tree of one screen")
        if count + len(stack) > markup.MAX_NODES:
            raise InputError(f"{where}: more than {markup.MAX_NODES:,} nodes; expected the tree of one screen")
        memory.require(markup.NODE_BYTES * (count + len(stack)), f"{where}: a tree of {count + len(stack):,} nodes")
        detail = node.get("driverDetail")
        details = [detail] if isinstance(detail, Mapping) else []
        element = markup.add(parent, attributes(f"{where}, node {count - 1}", *details, node))
        children = node.get("children")
        if isinstance(children, list):
            # Some tools write null for a child that they could not read.
            stack += [(child, element, depth + 1) for child in reversed(children) if child is not None]
    return markup.write(root, where)


def _screenshots(found: Mapping[str, Any], path: Path) -> tuple[Screenshot | None, ...]:
    """The picture that the JSON file names, if this picture is in the same folder; else the picture from `beside`."""
    named = found.get("screenshotFile")
    try:
        if isinstance(named, str) and Path(named).name == named and (path.parent / named).is_file():
            require_inside(path.parent / named, path.parent)
            return (FileScreenshot(path.parent / named),)
    except OSError:  # an impossible file name, such as one that is too long
        pass
    picture = beside(path)
    return (picture,) if picture else ()
