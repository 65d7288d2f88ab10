# ruff: noqa: E501  (programs in one line each)
"""Programs and their ids, as the first version of format 2 gave them.

Runs, reward files and people name programs by these: an id that changes with the version of Python, or with ours, makes
a resumed run try its own programs again. Where a change cannot be helped, the format of runs (`runs.store.FORMAT`) has to change with it.
"""

from __future__ import annotations

RECORDED = {  # source and id, by what it shows
    "a function": ("def near(x, *y, z=1, **w):\n    return x < 1.5 and not y[0] or -z", "6b8a93c90ee724a7"),
    "a generator, awaited": ("async def f(x):\n    async for y in x:\n        yield await y", "7b371b9762eac819"),
    "a class": (
        "class Reward(Base, metaclass=Meta):\n    n: int = 0\n\n    @property\n    def half(self) -> float:\n        return self.n / 2",
        "dd4c9d6e8a50662b",
    ),
    "a whole program": (
        "import numpy as np\n\n\nclass Reward:\n    def __init__(self, extra_info=None):\n        self.word = (extra_info or '').split()\n\n    def reward_fn(self, state):\n        return float(np.tanh(state[0])) + len(self.word)",
        "e404611d63eb5dad",
    ),
    "an f-string": ("x = f'a{b}c{d!r}'", "49c6144c8607aed3"),
    "an f-string with a format": ("x = f'{a:>10}{b:{width}}{c:{width}.{places}f}'", "caa955f7ecbb7aaa"),
    "an f-string with an empty format": ("x = f'{a:}{b!s:}'", "1d91fa82bee0b845"),
    "an f-string that shows itself": ("x = f'a{b=}c{d = !r:>{e}}'", "17c2e602c65c1ad4"),
    "f-strings side by side": ("x = 'a' f'{b}' 'c' 'd' f''", "4494afe819841894"),
    "an f-string in an f-string": ('x = f\'{f"{a}"}{""}\'', "e2b948576ed1ea57"),
    "letters of other languages": ("x = 'Réveil 起床 😀'", "181ecf3b3d4fbbe6"),
    "a letter that Unicode 15 added": ("x = '\\U0001fae8'", "1435d89e0abd91de"),
    "half a letter": ("x = '\\ud800'", "0d09be4dac371c46"),
    "numbers": ("x = 1, 1.0, True, 1j, 1e400, -0.0, 10**30, None, ..., b'\\xff'", "091c293e48c9d3e1"),
    "a match": (
        "match x:\n    case {'a': [1, *y], **z}:\n        pass\n    case C(a=1) | None if w:\n        pass",
        "cb486efa6f76b522",
    ),
    "groups of exceptions": (
        "try:\n    a\nexcept* ValueError as b:\n    c\nelse:\n    d\nfinally:\n    e",
        "82fd56a4e26dc20a",
    ),
    "a lambda, a walrus, slices": ("x = lambda a, /, *b: (y := a[1:, ..., *b])", "ca79e5e7c903909b"),
    "comprehensions": (
        "x = [a for b in c if d for a in b], {a: b for a, b in c}, {*a}, (a async for a in b)",
        "6ee81eecd006af9c",
    ),
}
