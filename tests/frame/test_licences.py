"""Every package of the locks has a licence that is listed, allowed, and what the package says of itself."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from typing import Any

import pytest
from packaging.licenses import canonicalize_license_expression

from tests.frame.test_dependencies import lock
from tests.frame.tree import ROOT

FILE: dict[str, Any] = tomllib.loads((ROOT / "requirements" / "licences.toml").read_text())
ALLOWED: set[str] = set(FILE["allowed"])
EXCEPTIONS: dict[str, str] = FILE["exceptions"]
LICENCES: dict[str, str] = FILE["licences"]
PINNED = sorted({name for each in ("core", "full", "baselines", "torch") for name in lock(each)})

# What packages say that is no SPDX expression, and what it can stand for.
WORDS = {
    "3-Clause BSD License": {"BSD-3-Clause"},
    "Apache 2.0": {"Apache-2.0"},
    "Apache Software License": {"Apache-2.0"},
    "BSD": {"BSD-2-Clause", "BSD-3-Clause"},
    "BSD License": {"BSD-2-Clause", "BSD-3-Clause"},
    "GNU Library or Lesser General Public License (LGPL)": {"LGPL-2.1-only"},
    "ISC License": {"ISC"},
    "ISC license": {"ISC"},
    "ISC License (ISCL)": {"ISC"},
    "LGPL v2.1": {"LGPL-2.1-only"},
    "MIT License": {"MIT"},
    "zlib": {"Zlib"},
    "Mozilla Public License 2.0 (MPL 2.0)": {"MPL-2.0"},
}


def parts(expression: str) -> set[str]:
    """The licences of an expression."""
    return set(re.split(r" AND | OR ", expression.replace("(", "").replace(")", "")))


def allowed(expression: str) -> bool:
    """One licence of each choice is allowed, and a choice is left to each part."""
    return all(
        any(choice.strip("() ") in ALLOWED for choice in re.split(" OR ", part))
        for part in re.split(" AND ", expression)
    )


def said(name: str) -> list[set[str]]:
    """What a package says of its licence, from the exact to the vague: each a set of what it can mean."""
    metadata = distribution(name).metadata
    expression = metadata.get("License-Expression")
    if expression:
        return [{one} for one in parts(expression)]
    lines = (metadata.get("License") or "").strip().splitlines()
    if len(lines) == 1 and lines != ["UNKNOWN"]:  # more lines are the text of the licence
        return [WORDS.get(one, {one}) for one in parts(lines[0])]
    classifiers = [line for line in metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    return [WORDS.get(line.split(" :: ")[-1], {line}) for line in classifiers]


def test_every_pin_is_listed_and_nothing_else() -> None:
    assert sorted(LICENCES) == PINNED


@pytest.mark.parametrize("name", PINNED)
def test_a_licence_is_what_the_package_says(name: str) -> None:
    listed = LICENCES[name]
    assert canonicalize_license_expression(listed) == listed
    found = said(name)
    assert found, f"{name} says nothing of its licence"
    assert all(meanings & parts(listed) for meanings in found), f"{name} says {found}, and is listed as {listed}"
    assert parts(listed) <= set().union(*found)


@pytest.mark.parametrize("name", PINNED)
def test_a_licence_is_allowed_or_has_a_reason(name: str) -> None:
    assert allowed(LICENCES[name]) != (name in EXCEPTIONS)


def test_exceptions_are_of_pins_and_have_a_reason() -> None:
    assert EXCEPTIONS.keys() <= set(PINNED)
    assert all(len(reason.split()) > 5 for reason in EXCEPTIONS.values())


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "AGPL-3.0-or-later", "LicenseRef-Proprietary", "MIT AND GPL-2.0-only"]
)
def test_other_licences_are_not_allowed(licence: str) -> None:
    assert not allowed(licence)
    assert allowed("MIT OR GPL-2.0-only")
