"""Rewards that are no numbers, and answers that are forged."""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from tests.hostile.attack import Attack, program


def _returns(name: str, value: str, *statuses: str, **options: object) -> Attack:
    source = f"\nclass Reward:\n    def reward_fn(self, state):\n        return {value}\n"
    return program(name, source, *statuses, **options)


_FIND = """
def find(name, start):
    frame = start
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if type(value).__name__ == name:
                return value
        frame = frame.f_back
    return None
"""

ATTACKS = [
    _returns("NaN", "float('nan')", "nonfinite"),
    _returns("infinity", "float('inf')", "nonfinite"),
    _returns("a huge number", "1e300", "nonfinite"),
    _returns("a huge integer", "10 ** 400", "nonfinite"),
    _returns("text", "'1.0'", "type"),
    _returns("None", "None", "type"),
    _returns("a complex number", "1j", "type"),
    _returns("an array", "np.ones(3)", "type"),
    _returns("an array of one", "np.ones(1)", "type"),
    _returns("an array of text", "np.array('1.0')", "type"),
    _returns("an array of objects", "np.array(1.0, dtype=object)", "type"),
    _returns("a list", "[1.0]", "type"),
    _returns("a decimal", "__import__('decimal').Decimal(1)", "type"),
    _returns("a float subclass that lies", "type('F', (float,), {'__float__': lambda self: float('nan')})(1.0)", "nonfinite"),
    _returns("a float subclass whose __float__ is text", "type('F', (float,), {'__float__': lambda self: 'x'})(1.0)", "runtime"),
    _returns("an object with __float__", "type('F', (), {'__float__': lambda self: 0.0})()", "type"),
    _returns("an object with __reduce__", "type('F', (), {'__reduce__': lambda self: (os.system, ('true',))})()", "type"),
    _returns("a class that claims to be float", "type('F', (), {'__class__': float})()", "type", "runtime"),
    program("forged status", _FIND + """
class Reward:
    def reward_fn(self, state):
        answer = find("Answer", sys._getframe())
        if answer is None:
            return 0.0
        m = answer._map
        at = answer.job.answer_at
        m[at:at + 32] = b"\\xff" * 32
        os._exit(0)
""", "killed", "ok"),
    program("forged lengths", _FIND + """
class Reward:
    def reward_fn(self, state):
        answer = find("Answer", sys._getframe())
        if answer is None:
            return 0.0
        at = answer.job.answer_at
        answer._map[at:at + 32] = (6).to_bytes(8, "little") + b"\\xff" * 7 + b"\\x7f" + b"\\xff" * 7 + b"\\x7f" + bytes(8)
        os._exit(0)
""", "ok", "runtime", "killed"),
    program("forged counts", _FIND + """
class Reward:
    def reward_fn(self, state):
        answer = find("Answer", sys._getframe())
        if answer is not None:
            answer._map[0:64] = b"\\xff" * 64
        return 0.0
""", "ok"),
    program("forged NaN", _FIND + """
class Reward:
    def reward_fn(self, state):
        answer = find("Answer", sys._getframe())
        if answer is None:
            return 0.0
        answer.rewards[:] = memoryview(np.full(len(answer.rewards), np.nan))
        answer.finish("ok")
        os._exit(0)
""", "nonfinite", "ok"),
    program("resized result", _FIND + """
class Reward:
    def reward_fn(self, state):
        answer = find("Answer", sys._getframe())
        if answer is None:
            return 0.0
        try:
            answer._map.resize(1 << 30)
        except Exception:
            return 0.0
        return 1.0
""", "ok"),
    program("frames written ahead", """
import struct
class Reward:
    def reward_fn(self, state):
        try:
            os.write(4, struct.pack("<Bd", 1, 0.0) * 3)
        except OSError:
            pass
        return 0.0
""", "ok", "killed"),
    program("garbage for an answer", """
class Reward:
    def reward_fn(self, state):
        try:
            os.write(4, b"\\xee" * 100)
        except OSError:
            pass
        return 0.0
""", "ok", "killed"),
    program("an answer without end", """
import struct
class Reward:
    def reward_fn(self, state):
        try:
            os.write(4, struct.pack("<Bd", 7, 1e300))
        except OSError:
            pass
        return 0.0
""", "ok", "killed"),
    program("an answer that never comes", """
import struct
class Reward:
    def reward_fn(self, state):
        try:
            os.write(4, struct.pack("<Bd", 7, 50000.0) + b"x")
            while True:
                pass
        except OSError:
            return 0.0
""", "ok", "timeout", wall_s=0.4),
    program("pipe closed", """
class Reward:
    def reward_fn(self, state):
        for fd in range(0, 64):
            try:
                os.close(fd)
            except OSError:
                pass
        return 0.0
""", "ok", "killed", "runtime"),
    program("states read ahead", """
class Reward:
    def reward_fn(self, state):
        try:
            os.read(3, 1 << 20)
        except OSError:
            return 0.0
        return 0.0
""", "ok", "timeout", "killed", wall_s=0.4),
    program("states made writable", _FIND + """
class Reward:
    def reward_fn(self, state):
        views = find("Views", sys._getframe())
        if views is None:
            return 0.0
        segment = views._map
        start = np.frombuffer(segment, np.uint8).ctypes.data
        if libc.mprotect(ctypes.c_void_p(start // 4096 * 4096), len(segment), 3) == -1:
            return 0.0
        ctypes.memset(start, 0, len(segment))
        os._exit(0)
""", "ok", "killed"),
    program("states written through numpy", _FIND + """
class Reward:
    def reward_fn(self, state):
        views = find("Views", sys._getframe())
        if views is None:
            return 0.0
        try:
            array = views[0].arrays[0]
            array.setflags(write=True)
            array[:] = 0
        except ValueError:
            return 0.0
        return 1.0
""", "ok"),
    program("states written through ctypes", _FIND + """
class Reward:
    def reward_fn(self, state):
        views = find("Views", sys._getframe())
        if views is None:
            return 0.0
        ctypes.memset(views[0].arrays[0].ctypes.data, 0, 8)
        return 1.0
""", "ok", "killed"),
    program("numpy and builtins patched", """
import builtins
np.ndarray.astype = None if False else np.ndarray.astype
np.frombuffer = np.ndarray = np.dtype = np.zeros = lambda *a, **k: 1 / 0
builtins.len = builtins.isinstance = builtins.float = builtins.range = lambda *a: 1 / 0
class Reward:
    def reward_fn(self, state):
        return 0.0
""", "ok", "init", "runtime", "killed"),
]  # fmt: skip
