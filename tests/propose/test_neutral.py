"""No prompt names what the data come from: environments, data sets, files and tasks have names that models know."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.convert import scramble
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Split, Trajectory
from grace_irl.methods.grace_operators import OPERATORS
from grace_irl.propose import manual
from grace_irl.propose.briefing import brief, neutral_names
from grace_irl.propose.protocol import Prompt
from grace_irl.propose.rendering import COMMON, Operator
from tests.propose import asked, screens
from tests.propose.client.server import ChatServer
from tests.runs.goal_world import CLEANING

SET = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"
KINDS = ("grid", "ui", "vector")
PER_ROLE = 3

PROGRAM = '''class Reward:
    """Looks at one number."""

    def __init__(self, extra_info=None):
        self.seen = 0

    def reward_fn(self, state):
        self.seen += 1
        value = float(len(state)) if isinstance(state, str) else float(np.sum(state))
        return value % {modulus} + {fault}

    def debug_fn(self, state):
        return f"state {{self.seen}}, {{[name for name in dir(self) if name[0] != '_']}}"


def debug(expert_states, negative_states):
    return f"{{len(expert_states)}} against {{len(negative_states)}}"
'''


@dataclass
class World:
    """Demonstrations in files, by the names that real ones have.

    Attributes:
        paths: of the two sets, a task each.
        tasks: their names.
        secrets: what no prompt may hold.
    """

    paths: list[Path]
    tasks: list[str]
    secrets: set[str]


def two_tasks(kind: str, folder: Path) -> World:
    """Two sets of a kind: `FOLDER/<set>/<role>.parquet`, each of one task."""
    sets = {"grid": _grids, "ui": _screens, "vector": _vectors}[kind]()
    paths = []
    secrets = {str(folder), *folder.parts[-2:]}
    for name, demonstrations in sets.items():
        path = folder / name / f"{name}-recorded.parquet"
        path.parent.mkdir(parents=True)
        save(demonstrations, path)
        paths.append(path.parent)
        secrets |= {name, path.name, path.stem, *demonstrations.tasks, demonstrations.metadata.environment}
        secrets |= {part for task in demonstrations.tasks for part in task.split("-") if len(part) > 3}
    tasks = [task for demonstrations in sets.values() for task in demonstrations.tasks]
    return World(paths, tasks, {secret for secret in secrets if secret})


def _grids() -> dict[str, Demonstrations]:
    found = load([SET])
    names = {"minigrid-go-to-obj": "BabyAI-GoToObj-v0", "minigrid-put-next": "BabyAI-PutNextLocal-v0"}
    sets = {}
    for place, (name, task) in enumerate(names.items()):
        parts = [found.select(role=role)[place * PER_ROLE : (place + 1) * PER_ROLE] for role in ("expert", "negative")]
        items = tuple(replace(item, task=task) for part in parts for item in part)
        sets[name] = Demonstrations(replace(found.metadata, environment=task), items)
    return sets


def _screens() -> dict[str, Demonstrations]:
    names = {"android-world-clock": "ClockTimerEntry", "android-control-alarm": "SimpleAlarmSet"}
    sets = {}
    for name, task in names.items():
        items = tuple(replace(item, split=None) for item in screens.demonstrations(task)[:PER_ROLE])
        still = replace(items[-1], trajectory=replace(items[-1].trajectory, extra_info="warm the fen to 70 degrees"))
        sets[name] = Demonstrations(Metadata("ui", view="uiautomator"), (*items, still))
    return sets


def _vectors() -> dict[str, Demonstrations]:
    rng = np.random.default_rng(0)
    names = {"mujoco-hopper-expert": "Hopper-v5", "d4rl-hopper-medium": "HopperMedium-v2"}
    sets = {}
    for name, task in names.items():
        items = []
        roles: list[tuple[Role, float]] = [("expert", 1.0), ("negative", 0.0)]
        for role, mean in roles:
            for _ in range(PER_ROLE):
                states = rng.normal(mean, 1.0, (12, 3)).round(3)
                items.append(Demonstration(Trajectory(states, source=name), role, task))
        metadata = Metadata("vector", fields=("torso height", "thigh angle", "foot speed"), environment="Hopper-v5")
        sets[name] = Demonstrations(metadata, tuple(items))
    return sets


@dataclass
class Model:
    """Answers every kind of prompt: goal states, at first badly, and programs of which some fail."""

    prompts: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, prompt: str) -> str:
        with self._lock:
            self.prompts.append(prompt)
            number = len(self.prompts)
        if CLEANING in prompt:
            found = re.search(r"Trajectory 1:.*?(\d+) states", prompt)
            assert found is not None
            return "trajectory 1: 999" if "An earlier answer" not in prompt else f"trajectory 1: {found[1]}"
        fault = "1 / (self.seen - 2)" if number % 3 == 0 else "0.0"
        return f"A sum.\n\n```python\nimport numpy as np\n\n\n{PROGRAM.format(modulus=5 + number, fault=fault)}```\n"


Spied = dict[str, list[Prompt]]


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> Spied:
    """The prompts of every operator that is registered, by its name."""
    found: Spied = {name: [] for name in (*OPERATORS, *COMMON)}

    def spy(name: str, operator: Operator) -> Operator:
        def write(*given: object) -> Prompt:
            found[name].append(operator(*given))
            return found[name][-1]

        return replace(operator, write=write)

    for registered in (OPERATORS, COMMON):
        for name, operator in list(registered.items()):
            monkeypatch.setitem(registered, name, spy(name, operator))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "mixed", [pytest.param(False, id="plain"), pytest.param(True, marks=pytest.mark.slow, id="scrambled")]
)
def test_no_operator_names_what_the_data_come_from(kind: str, mixed: bool, tmp_path: Path, spied: Spied) -> None:
    world = two_tasks(kind, tmp_path / "BabyAI-and-Hopper")
    paths = world.paths
    if mixed:
        scramble(world.paths, tmp_path / "mixed", 0)
        paths = [tmp_path / "mixed" / path.name for path in world.paths]
        world.secrets |= _words(world.paths)
    model = Model()
    with ChatServer(answer=model) as server:
        images = ["--images"] if kind != "vector" else []
        run = ["--llm-url", server.url, "--answer-format", "code", "--out", str(tmp_path / "run"), *images]
        size = ["--population", "3", "--elite", "1", "--generations", "2", "--samples-per-call", "1", "--reshape", "1"]
        demos = [word for path in paths for word in ("--demos", str(path))]
        assert main(["fit", *demos, "--label", "goal", "--held-out", "0", "--workers", "1", *run, *size]) == 0
        sent = [re.sub(r"base64,[^']*", "", str(payload["messages"])) for payload in server.payloads]
    unused = [name for name, prompts in spied.items() if not prompts]
    assert not unused, f"a run asks nothing by {unused}: have this test ask it"
    texts = [prompt.text for prompts in spied.values() for prompt in prompts]
    assert len(sent) >= len(texts)
    pictured = {name for name, prompts in spied.items() if any(prompt.images for prompt in prompts)}
    assert pictured == ({*OPERATORS, "clean"} if images else set())
    assert any("## Task A" in text and "## Task B" in text for text in texts)
    assert any("\ntask A: accuracy" in text and "\ntask B: accuracy" in text for text in texts)
    report = (tmp_path / "run" / "report.html").read_text()
    assert all(f"{task} (task {letter} in prompts)" in report for task, letter in zip(world.tasks, "AB", strict=True))
    for text in [*texts, *model.prompts, *sent]:
        lower = text.lower()
        assert not [secret for secret in world.secrets if secret.lower() in lower]


def test_files_for_a_person_hold_no_name_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manual, "LOOK", 0.02)
    world, model, ended = two_tasks("grid", tmp_path / "sets"), Model(), threading.Event()
    folder = tmp_path / "run" / "manual"

    def answer() -> None:
        while not ended.wait(0.1):
            for prompt in folder.glob("*.prompt.md"):
                file = prompt.with_name(prompt.name.replace(".prompt.", ".answer."))
                if not file.exists():
                    file.write_text(model(prompt.read_text()))

    person = threading.Thread(target=answer)
    person.start()
    try:
        demos = [word for path in world.paths for word in ("--demos", str(path))]
        given = [
            "--proposer",
            "manual",
            "--images",
            "--label",
            "goal",
            "--held-out",
            "0",
            "--out",
            str(tmp_path / "run"),
        ]
        assert main(["fit", *demos, *given, "--population", "2", "--elite", "1", "--generations", "1"]) == 0
    finally:
        ended.set()
        person.join()
    files = list(folder.iterdir())
    assert {"prompt", "answer", "image1"} <= {file.name.split(".")[1] for file in files}
    for file in files:
        held = f"{file.name} {file.read_bytes().decode(errors='replace')}".lower()
        assert not [secret for secret in world.secrets if secret.lower() in held]


def _words(paths: Sequence[Path]) -> set[str]:
    """The words of the instructions, which scrambled copies do not have; those of prompts themselves left out."""
    words = {word for item in load(paths) for word in re.findall(r"[a-z]{4,}", item.trajectory.extra_info)}
    ours = " ".join(path.read_text() for path in asked.SNAPSHOTS.glob("*-vector.txt")).lower()
    return {word for word in words if word not in ours}


def test_people_read_the_names_and_files_pass_none_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = two_tasks("grid", tmp_path)
    demos = [word for path in world.paths for word in ("--demos", str(path))]
    fit = ["--population", "2", "--elite", "1", "--generations", "0", "--out", str(tmp_path / "run")]
    assert main(["fit", *demos, "--held-out", "0", *fit]) == 0
    said = capsys.readouterr().out
    assert "BabyAI-GoToObj-v0" in said
    assert "BabyAI-PutNextLocal-v0" in said
    # The file names its data, and a search that starts from it hands over the program alone.
    reward = tmp_path / "run" / "reward.py"
    assert "minigrid-go-to-obj" in reward.read_text()
    with ChatServer(answer=(model := Model())) as server:
        begun = ["--start-from", str(reward), "--llm-url", server.url, "--answer-format", "code"]
        fit = ["--population", "2", "--elite", "1", "--generations", "1", "--out", str(tmp_path / "again")]
        assert main(["fit", *demos, "--held-out", "0", "--target-accuracy", "1", "--max-calls", "4", *begun, *fit]) == 0
    assert model.prompts
    assert not [name for name in world.secrets for prompt in model.prompts if name.lower() in prompt.lower()]


def test_tasks_are_letters() -> None:
    names = list(neutral_names(map(str, range(703))).values())
    assert names[:3] == ["A", "B", "C"]
    assert names[25:28] == ["Z", "AA", "AB"]
    assert names[701:] == ["ZZ", "AAA"]
    assert neutral_names(["far", "near", "far"]) == {"far": "A", "near": "B"}


def test_a_task_has_one_letter_in_all_prompts_of_a_run() -> None:
    plain = brief(asked.grids(tasks=("near", "far")))
    assert plain.names == {"near": "A", "far": "B"}
    assert plain.tasks == ("A", "B")


def test_tasks_of_every_split_have_a_letter() -> None:
    """Goal states are asked for in all splits. The letters follow the report: training tasks come first."""
    problem = asked.grids()
    first = problem.train[0]
    sides: tuple[Split, ...] = ("validation", "held_out")
    others = [
        replace(first, demonstration=replace(first.demonstration, task=f"{side} only", split=side)) for side in sides
    ]
    assert brief(replace(problem, items=(*others, *problem.items))).names == {
        "default": "A",
        "validation only": "B",
        "held_out only": "C",
    }
