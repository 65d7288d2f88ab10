"""Static checks that find errors in the source of a reward program before the program runs.

The checks tell the author (a person or a model) which lines cannot work, and why. They give no security, because a
hostile author can easily avoid them. Security comes from the sandbox (docs/sandbox.md). The checks run in the sandbox's
child process, because a hostile source can attack the parser.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from grace_irl.programs import contract
from grace_irl.programs.contract import SourceProblem
from grace_irl.programs.parsing import canonical, parse, unseen


@dataclass(frozen=True)
class Bindings:
    """The names that a source's import statements bind.

    Attributes:
        modules: names of modules, such as `np` from `import numpy as np`.
        numpy: names in `modules` that stand for numpy or a part of it.
        members: names imported from an allowed module, such as `sqrt` from `from math import sqrt`. A member may be a
            module, such as `linalg` from `from numpy import linalg`.
        refusals: problems with imports that are not allowed.
    """

    modules: frozenset[str]
    numpy: frozenset[str]
    members: frozenset[str]
    refusals: tuple[SourceProblem, ...] = field(default=())


def bindings(nodes: Iterable[ast.AST]) -> Bindings:
    """The names that import statements bind. `nodes` are all nodes of a syntax tree."""
    modules: set[str] = set()
    numpy: set[str] = set()
    members: set[str] = set()
    refusals: list[tuple[int, str | None]] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                modules.add(alias.asname or root)
                if root == "numpy":
                    numpy.add(alias.asname or root)
                refusals.append((node.lineno, _refusal(alias.name)))
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            said = "relative import: a reward program is one file" if node.level else _refusal(source)
            refusals.append((node.lineno, said))
            if said is None:
                members |= {alias.asname or alias.name for alias in node.names}
                refusals += [(node.lineno, _member_refusal(source, alias.name)) for alias in node.names]
    found = tuple(SourceProblem(line, said) for line, said in refusals if said is not None)
    return Bindings(frozenset(modules), frozenset(numpy), frozenset(members), found)


def root_name(node: ast.expr) -> str:
    """The first name in a chain of attributes and subscripts, such as `np` in `np.linalg.norm`; "" if there is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _refusal(module: str) -> str | None:
    """The reason to refuse the import of a module; None if the import is allowed."""
    root = module.partition(".")[0]
    if root not in contract.ALLOWED_MODULES:
        allowed = (
            "numpy, lxml and the modules of the standard library without access to files, processes or the network "
            "(docs/contract.md)"
        )
        return f"`import {root}` is not allowed; a reward may import {allowed}"
    parts = module.split(".")
    prefixes = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    if prefixes & contract.FORBIDDEN_SUBMODULES:
        return f"`{module}` is not allowed: it gives access to files, compilers or memory outside Python"
    return None


def _member_refusal(module: str, name: str) -> str | None:
    """The reason to refuse the import of a name from an allowed module; None if the import is allowed."""
    if name == "*" and module.partition(".")[0] in HIDING:
        return f"`from {module} import *` hides which names the program uses: import them by name"
    if (said := _refusal(f"{module}.{name}")) is not None:
        return said
    if module.partition(".")[0] == "numpy" and name in contract.NUMPY_FILES:
        return f"`{module}.{name}` reads or writes files: files are out of reach"
    if name.startswith("_") and module != "__future__":
        return f"`{name}` is private to `{module}`: use its public names"
    return None


HIDING = frozenset({"numpy", "random", "datetime"})
"""Modules with members that other checks refuse by name. A star import would hide these names from the checks."""

NO_DOCSTRING = "programs that differ in docstrings alone are one program, so keep data in a variable"

# names that a program must not use, each with the reason or an alternative
FORBIDDEN_NAMES = {
    "open": "files are out of reach",
    "exec": "source that is made at run time cannot be checked",
    "eval": "source that is made at run time cannot be checked",
    "compile": "source that is made at run time cannot be checked",
    "__import__": "use an import statement",
    "globals": "keep state on self",
    "vars": "keep state on self",
    "input": "there is nobody to ask",
    "breakpoint": "there is nobody to debug",
    "exit": "return a number instead",
    "quit": "return a number instead",
    "__builtins__": "use the builtins by their names",
    "__loader__": "use an import statement",
    "__spec__": "use an import statement",
    "__file__": "files are out of reach",
    "__doc__": NO_DOCSTRING,
}

FORBIDDEN_ATTRIBUTES = frozenset(
    {
        *("f_back", "f_builtins", "f_code", "f_globals", "f_locals", "gi_frame", "gi_code", "cr_frame"),
        *("cr_code", "ag_frame", "ag_code", "tb_frame", "tb_next", "co_consts", "co_code"),
        *("__code__", "__closure__", "__globals__", "__builtins__", "__traceback__", "__import__"),
        *("__subclasses__", "__bases__", "__mro__", "__reduce__", "__reduce_ex__", "__loader__", "__spec__"),
    }
)
"""Attributes that lead from a value to the interpreter: frames, code objects, the class tree, imports and pickling."""

FORBIDDEN_UNLESS_SELF = frozenset({"base", "sys", "os", "modules"})
"""Attributes that lead from a module or an array to other modules or memory.

A program may define attributes with these names on `self`."""

UNSEEDED = frozenset({"default_rng", "RandomState", "Random", "SystemRandom"})
"""Constructors of random generators. Without a seed, a generator draws different numbers in every run.

`SystemRandom` ignores its seed."""

CLOCK = frozenset({"now", "today", "utcnow"})
"""Methods of the classes of `datetime` that read the clock. `numpy.datetime64("now")` and `("today")` read it, too."""

READS_CLOCK = "reads the clock, which differs in every run: take times from the states"

_REPORTED = 20


@dataclass(frozen=True)
class SourceReading:
    """The result of the static checks of a source.

    Attributes:
        tree: the syntax tree; None if the source is too long, has invisible characters or does not parse.
        problems: if `tree` is None, the reasons. Otherwise, the first `_REPORTED` problems with forbidden code, in the
            order of lines, then the violations of the contract.
        takes_action: whether reward_fn takes (state, action, next_state) instead of (state).
    """

    tree: ast.Module | None
    problems: tuple[SourceProblem, ...]
    takes_action: bool = False


def read(source: str) -> SourceReading:
    """Parse and check a source. No source makes this function raise an exception."""
    source = canonical(source)
    size = len(source.encode("utf-8", "surrogatepass"))
    if (problem := too_long(size)) is not None:
        return SourceReading(None, (problem,))
    if hidden := unseen(source):
        return SourceReading(None, hidden)
    try:
        tree = parse(source, contract.FILENAME)
    except SyntaxError as error:
        return SourceReading(None, (SourceProblem(error.lineno or 0, f"syntax error: {error.msg}", "syntax"),))
    except (ValueError, RecursionError, MemoryError) as error:
        said = "nested too deeply" if not isinstance(error, ValueError) else str(error)
        return SourceReading(None, (SourceProblem(0, f"syntax error: {said}", "syntax"),))
    refused = sorted(set(_refusals(list(ast.walk(tree)))))[:_REPORTED]
    missing, takes_action = _contract(tree)
    return SourceReading(tree, (*refused, *missing), takes_action)


def too_long(size: int) -> SourceProblem | None:
    """The problem with the length of a source, which is `size` UTF-8 bytes; None if the source is short enough.

    Unlike the other checks, this check also runs outside the sandbox, before the sandbox gets the source.
    """
    if size <= contract.MAX_SOURCE_BYTES:
        return None
    return SourceProblem(0, f"the source has {size} bytes; expected at most {contract.MAX_SOURCE_BYTES}: shorten it")


def _refusals(nodes: list[ast.AST]) -> list[SourceProblem]:
    """All forbidden imports, names, attributes and calls among a tree's nodes, in no particular order."""
    bound = bindings(nodes)
    found: list[SourceProblem] = [*bound.refusals]
    for node in nodes:
        match node:
            case ast.Name(id=name) if name in FORBIDDEN_NAMES:
                found.append(SourceProblem(node.lineno, f"`{name}` is not available: {FORBIDDEN_NAMES[name]}"))
            case ast.Attribute():
                found.extend(_attribute(node, bound))
            case ast.Call():
                found.extend(_call(node, bound))
    return found


def _attribute(node: ast.Attribute, bound: Bindings) -> list[SourceProblem]:
    name, line = node.attr, node.lineno
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    root = root_name(node)
    if isinstance(node.ctx, (ast.Store, ast.Del)) and root in bound.modules:
        return [SourceProblem(line, f"changes the module `{root}`, which every trajectory shares: keep state on self")]
    if name in FORBIDDEN_ATTRIBUTES:
        return [SourceProblem(line, f"`.{name}` reaches into the interpreter: use the object itself")]
    if name == "__doc__":
        return [SourceProblem(line, f"`.{name}` is not available: {NO_DOCSTRING}")]
    if name in FORBIDDEN_UNLESS_SELF and owner != "self":
        return [SourceProblem(line, f"`.{name}` leads out of the program: copy what you need onto self")]
    if name in contract.NUMPY_FILES and root in bound.numpy:
        return [SourceProblem(line, f"`numpy.{name}` reads or writes files: files are out of reach")]
    if name == "tofile":
        return [SourceProblem(line, "`.tofile` writes a file: files are out of reach")]
    if name.startswith("_") and not name.startswith("__") and owner in bound.modules:
        return [SourceProblem(line, f"`{owner}.{name}` is private to its module: use its public names")]
    return []


def _call(node: ast.Call, bound: Bindings) -> list[SourceProblem]:
    match node:
        case ast.Call(func=ast.Name(id="getattr" | "setattr" | "delattr" as called), args=[target, *rest]):
            root = root_name(target)
            if called != "getattr" and root in bound.modules:
                return [SourceProblem(node.lineno, f"changes the module `{root}`: keep state on self")]
            if rest and isinstance(rest[0], ast.Constant) and rest[0].value in FORBIDDEN_ATTRIBUTES:
                return [SourceProblem(node.lineno, f"`{rest[0].value}` reaches into the interpreter")]
            if rest and isinstance(rest[0], ast.Constant) and rest[0].value == "__doc__":
                return [SourceProblem(node.lineno, f"`__doc__` is not available: {NO_DOCSTRING}")]
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in UNSEEDED:
            seeded = (node.args or node.keywords) and name != "SystemRandom"
            if not seeded and root_name(node.func) in bound.modules | bound.members:
                advice = (
                    "give it a seed" if name != "SystemRandom" else "it ignores seeds: use `random.Random` with one"
                )
                return [SourceProblem(node.lineno, f"`{name}()` gives other numbers in every run: {advice}")]
        case ast.Call(func=ast.Attribute(attr=name)) if name in CLOCK:
            if root_name(node.func) in bound.modules | bound.members:
                return [SourceProblem(node.lineno, f"`{name}()` {READS_CLOCK}")]
        case ast.Call(
            func=ast.Attribute(attr="datetime64") | ast.Name(id="datetime64"), args=[ast.Constant(value=value), *_]
        ) if isinstance(value, str) and value.lower() in CLOCK:
            return [SourceProblem(node.lineno, f'`datetime64("{value}")` {READS_CLOCK}')]
    return []


def _contract(tree: ast.Module) -> tuple[list[SourceProblem], bool]:
    """Problems with class `Reward` and its method reward_fn, and whether reward_fn takes actions."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    reward = classes.get(contract.REWARD_CLASS)
    if reward is None:
        return [SourceProblem(0, _no_class(tree), "contract")], False
    method = _method(reward, classes, contract.REWARD_METHOD)
    if method is None:
        said = "class Reward has no method reward_fn; expected reward_fn(self, state)"
        return [SourceProblem(reward.lineno, said, "contract")], False
    if isinstance(method, ast.AsyncFunctionDef):
        return [SourceProblem(method.lineno, "reward_fn is async; expected a plain method", "contract")], False
    named = zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)
    required = [argument.arg for argument, default in named if default is None]
    if required and not method.decorator_list:  # a decorator may pass them
        said = f"reward_fn requires {', '.join(required)} by name; expected (state) or (state, action, next_state)"
        return [SourceProblem(method.lineno, said, "contract")], False
    low, high = _arity(method)
    if low <= 1 <= high:
        return [], False
    if low <= 3 <= high:
        return [], True
    said = f"reward_fn takes {low} arguments besides self; expected (state) or (state, action, next_state)"
    return [SourceProblem(method.lineno, said, "contract")], False


def _no_class(tree: ast.Module) -> str:
    said = "no class Reward; expected `class Reward` with a method reward_fn(self, state)"
    functions = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return f"{said} (found {', '.join(functions[:5])})" if functions else said


def _method(
    owner: ast.ClassDef, classes: dict[str, ast.ClassDef], name: str
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The method `name` of a class; None if there is none. The method may be inherited from a class of the same source.

    If a class defines the method several times, the last definition counts, as in Python.

    Args:
        owner: the class.
        classes: the classes at the top level of the source, by name.
        name: name of the method.
    """
    seen: set[str] = set()
    waiting = [owner]
    while waiting:
        current = waiting.pop(0)
        if current.name in seen:
            continue
        seen.add(current.name)
        for node in reversed(current.body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
                return node
        names = [base.id for base in current.bases if isinstance(base, ast.Name)]
        waiting.extend(classes[base] for base in names if base in classes)
    return None


def _arity(method: ast.FunctionDef) -> tuple[int, int]:
    """The minimum and maximum number of positional arguments that a method takes, without self.

    With `*args` there is no maximum. The returned maximum is then at least 3, the most that the contract passes.
    """
    arguments = method.args
    most = len(arguments.posonlyargs) + len(arguments.args)
    least = most - len(arguments.defaults)
    decorators = {node.id for node in method.decorator_list if isinstance(node, ast.Name)}
    if "staticmethod" not in decorators:
        most, least = most - 1, least - 1
    if arguments.vararg is not None:
        most = max(most, 3)
    return max(least, 0), most
