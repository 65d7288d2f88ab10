"""Attacks on time and memory."""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from tests.hostile.attack import Attack, program

SHORT = 0.4

_LOOP = """
class Reward:
    def reward_fn(self, state):
        {body}
        return 1.0
    def debug_fn(self, state):
        {debug}
"""


def _hang(name: str, body: str, debug: str = "return ''", *, ask: bool = False) -> Attack:
    source = _LOOP.format(body=body, debug=debug)
    return program(name, source, "timeout", wall_s=SHORT, debug=ask)


def _bomb(name: str, body: str) -> Attack:
    lines = "\n        ".join(body.strip().splitlines())
    source = f"\nclass Reward:\n    def reward_fn(self, state):\n        {lines}\n        return 1.0\n"
    return program(name, source, "memory", "killed", memory_mb=64)


ATTACKS = [
    _hang("endless loop", "while True: pass"),
    _hang("endless loop that swallows everything", "exec('while True:\\n try:\\n  while True: pass\\n except BaseException: pass')"),
    _hang("regex bomb", "__import__('re').match('(a+)+$', 'a' * 64 + 'b')"),
    _hang("big integers", "9 ** 9 ** 9"),
    _hang("big integer to text", "sys.set_int_max_str_digits(0); str(1 << 10 ** 8)"),
    _hang("sleep", "__import__('time').sleep(1000)"),
    _hang("endless print", "exec('while True: print(chr(120) * 1000000)')"),
    _hang("sum of an endless iterator", "sum(__import__('itertools').repeat(1))"),
    _hang(
        "ignored signals",
        "exec('import signal\\nfor n in range(1, 65):\\n try: signal.signal(n, signal.SIG_IGN)\\n"
        " except Exception: pass\\nwhile True: pass')",
    ),
    _hang(
        "blocked signals",
        "exec('import signal\\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\\nwhile True: pass')",
    ),
    _hang("hang in debug_fn", "pass", "exec('while True: pass')", ask=True),
    program("hang in the module", "\nwhile True: pass\n" + _LOOP.format(body="pass", debug="pass"), "timeout", wall_s=SHORT),
    program(
        "hang in the constructor",
        "\nclass Reward:\n    def __init__(self, e=None):\n        while True: pass\n    def reward_fn(self, s):\n        return 1.0\n",
        "timeout",
        wall_s=SHORT,
    ),
    program(
        "hang while the error is shown",
        "\nclass E(Exception):\n    def __str__(self):\n        while True: pass\n"
        "class Reward:\n    def reward_fn(self, s):\n        raise E\n",
        "timeout",
        wall_s=SHORT,
    ),
    program(
        "CPU time",
        "\nimport time\nclass Reward:\n    def reward_fn(self, s):\n        while True: pass\n",
        "timeout",
        wall_s=SHORT,
    ),
    _bomb("list bomb", "x = [0]\nwhile True: x = x + x"),
    _bomb("text bomb", "x = 'x'\nwhile True: x = x + x"),
    _bomb("numpy bomb", "x = []\nwhile True: x.append(np.ones(1 << 20))"),
    _bomb("one huge array", "x = np.zeros(1 << 40)"),
    _bomb("mmap bomb", "x = []\nwhile True: x.append(mmap.mmap(-1, 1 << 24))"),
    _bomb("shared mmap bomb", "x = []\nwhile True: x.append(mmap.mmap(-1, 1 << 24, flags=mmap.MAP_SHARED))"),
    _bomb("dict bomb", "x = {}\nfor i in range(10 ** 12): x[i] = str(i)"),
    program(
        "endless recursion",
        "\nclass Reward:\n    def reward_fn(self, s):\n        sys.setrecursionlimit(10 ** 9)\n"
        "        f = lambda x: f(x)\n        return f(1)\n",
        "runtime", "memory", "killed", "timeout",
        wall_s=2.0,
    ),
    program(
        "recursion in C",
        "\nclass Reward:\n    def reward_fn(self, s):\n        sys.setrecursionlimit(10 ** 9)\n"
        "        x = []\n        for _ in range(10 ** 6): x = [x]\n        repr(x)\n        return 0.0\n",
        "runtime", "memory", "killed", "ok",
    ),
    program(
        "a long message",
        "\nclass Reward:\n    def reward_fn(self, s):\n        raise ValueError('x' * 50_000_000)\n",
        "runtime",
    ),
    program(
        "a long debug text",
        "\nclass Reward:\n    def reward_fn(self, s):\n        return 0.0\n"
        "    def debug_fn(self, s):\n        return '\\x1b[2J\\x07' + 'x' * 10_000_000\n",
        "ok",
        debug=True,
    ),
]  # fmt: skip
