"""Settings of a comparison of methods, and the files that hold them in the comparison's folder.

`compare.toml` holds the settings of the comparison itself. `fit.toml` holds the settings of the demonstrations and of
the method `grace`. A search of another method takes the values of `grace` for all settings that both methods have, such
as the model. Its further settings, such as `eureka.rounds`, are texts in `compare.toml`.
"""

from __future__ import annotations

import hashlib
import os
import reprlib
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import ValidationError

from grace_irl.atomic import write_atomically
from grace_irl.config import METHOD, MOST_STEPS, Config, ExpandConfig
from grace_irl.errors import InputError
from grace_irl.methods.registry import judged_by
from grace_irl.pages import page
from grace_irl.runs import acting
from grace_irl.runs.acting import authorised, plain_acting, runs_code
from grace_irl.runs.config import (
    config_of,
    flat,
    is_read,
    located_function,
    located_path,
    other_methods,
    parsed,
    resolve,
    settings_of,
    to_toml,
    with_settings,
)
from grace_irl.runs.config import located as located_run
from grace_irl.settings import Section, declared, nearest, problem_of, setting
from grace_irl.toml import read_toml

if TYPE_CHECKING:
    from grace_irl.demos.trajectory import Demonstrations

OURS = METHOD
"""Name of this package's own method, which is compared with all others."""
ORACLE = "ppo-true"
"""Name of PPO on the true reward."""
ALL = ("grace", "gail", "airl", "bc", "ppo-true")
KEEP = 5
"""Default number of policies that a training keeps, if the comparison has no rounds of expansion. A round trains a
policy on the reward, then searches again with the policy's episodes as negatives."""
MOST_KEPT = 100


class Comparison(Section):
    """Methods, environments and evaluations of a comparison."""

    panel: ClassVar[str] = "Training"
    short: ClassVar[bool] = True

    methods: tuple[str, ...] = setting(
        ALL,
        "Methods to compare, with commas between them.",
        unit="names",
        shown=",".join(ALL),
        common=True,
        details="`grace` and the other methods of `fit`, and methods that installed distributions offer.",
    )
    seeds: int = setting(5, "Runs of each method, from seed 0.", unit="runs", common=True, ge=1)
    steps: int = setting(
        100_000, "Environment steps of each run, expansion included.", unit="steps", common=True, ge=1, le=MOST_STEPS
    )
    env: str = setting(
        "",
        "Environment in which policies learn: a Gymnasium id, or file.py:function.",
        unit="id",
        shown="the demonstrations' own",
        common=True,
    )
    task: str = setting(
        "",
        f"Task: policies learn in its environment, and its score is measured, too ({page('tasks')}).",
        unit="file",
        shown="none",
        common=True,
        details="A TOML file, or a name such as reacher. The code of its environment and score runs on this machine. "
        "Demonstrations are optional with it.",
    )
    horizon: int = setting(
        0, f"Length of all episodes ({page('compare')}); 0: they end as they do.", unit="steps", ge=0
    )
    transfer: tuple[str, ...] = setting(
        (),
        "Environments in which fresh policies learn from the recovered rewards; also with --resume.",
        flag="transfer-env",
        unit="id",
    )
    tuned: tuple[str, ...] = setting(
        (),
        "One setting of a method, such as airl.demo_batch_size=512.",
        flag="tune",
        unit="method.key=value",
        details="The value as in TOML.",
    )
    reward: str = setting(
        "", "A reward file for grace, in place of a search.", unit="file", shown="search", common=True
    )
    episodes: int = setting(100, "Episodes of the evaluation at the end of a run.", unit="episodes", ge=1)
    looks: int = setting(10, "Evaluations on the way, evenly spread: points of a learning curve.", ge=1)
    look_episodes: int = setting(20, "Episodes of each evaluation on the way.", unit="episodes", ge=1)
    keep: int = setting(
        0,
        "Policies to keep along each training.",
        unit="policies",
        shown=f"the rounds of --expand, or {KEEP}",
        details="Results are of the last one, and of the one that the training's own signal pays most.",
        ge=0,
        le=MOST_KEPT,
    )
    choice_episodes: int = setting(
        10, "Episodes that each kept policy plays to choose the favourite.", unit="episodes", ge=1
    )
    device: Literal["auto", "cpu", "cuda"] = setting("auto", "Device of torch: auto, cpu or cuda.")
    draw_demos: int = setting(
        0,
        "Expert and negative trajectories of each task that a seed draws for all its methods; 0: all.",
        unit="trajectories",
        panel="Data",
        ge=0,
    )
    data: str = setting("", "Digest of the demonstrations that the comparison began with.", flag="")
    label_reason: str = setting("", "Reason for the label rule that it began with.", flag="")
    task_digest: str = setting("", "Digest of the task that it began with.", flag="")
    reward_digest: str = setting("", "Digest of the reward file that it began with.", flag="")
    searches: tuple[str, ...] = setting(
        (),
        "Settings that only other searches than that of grace have, such as eureka.rounds=2.",
        flag="",
        unit="key=value",
    )
    given: tuple[str, ...] = setting(
        (), "Keys of settings that the user gave for all searches, even with the default of one search.", flag=""
    )


@dataclass(frozen=True)
class Settings:
    """All settings of a comparison.

    Attributes:
        comparison: settings of the comparison itself.
        fit: settings of the demonstrations, and settings of `grace`: search, form of reward, sandbox and expansion. The
            searches of other methods take the values of `grace` for all settings that both have, such as the model.
    """

    comparison: Comparison
    fit: Config

    @property
    def searches(self) -> dict[str, Config]:
        """The settings of the search of each compared method of `grace-irl fit`, by the method's name. See `search`."""
        return {name: self.search(name) for name in self.comparison.methods if is_search(name)}

    def search(self, name: str) -> Config:
        """The settings of the search of one method.

        Args:
            name: `grace`, or the name of another method of `grace-irl fit`.

        Raises:
            InputError: a setting of this method has an invalid value.
        """
        found = self.fit if name == OURS else self._other(name)
        return with_settings(found, {TASK: self.comparison.task}) if TASK in flat(found) else found

    def _other(self, name: str) -> Config:
        """The settings of a method other than `grace`. Expansion is off unless the method supports expansion.

        The form of the reward is that of `grace` if demonstrations judge the programs. If policies judge them, the
        learner gets the reward as these policies did.
        """
        known, fit = settings_of(name), self.fit
        if not is_read("expand.rounds", name):
            form = fit.expand.form if judged_by(name, self.comparison.task).needs.demonstrations else "auto"
            fit = fit.model_copy(update={"expand": ExpandConfig(trust=fit.expand.trust, form=form)})
        usual, said = settings_of(fit.method), self.comparison.given
        given = {  # defaults of `fit` are not carried over to another method, unless the user gave them
            key: value
            for key, value in flat(fit).items()
            if key in known and (key in said or value != usual[key].default)
        }
        shared = given | {"method": name}
        sets = [each for each in self.comparison.searches if key_of(each) in known and key_of(each) not in flat(fit)]
        return resolve(sets=sets, base=with_settings(config_of(name)(), shared))

    def write(self, folder: Path) -> None:
        """Write `fit.toml` and `compare.toml`. `compare.toml` comes last, so that only a complete folder contains it.

        Also record on this machine that the user confirmed the settings (`grace_irl.runs.acting`).
        """
        token = folder / "token"
        write_atomically(folder / "fit.toml", to_toml(self.fit))
        write_atomically(token, acting.new_token() + "\n")
        acting.keep(token.read_text().strip(), token, self.acting())
        write_atomically(folder / "compare.toml", to_toml(self.comparison))

    def keeps(self) -> tuple[int, ...]:
        """Numbers of environment steps, below the total, after which each method keeps a copy of its policy.

        Training is divided into parts, and the numbers are the ends of all parts but the last. With expansion, the
        parts are the rounds. Without expansion, there are `keep` parts, or `KEEP` parts if `keep` is 0. Each part is
        `expand.growth` times as long as the part before.

        Raises:
            InputError: `keep` is given and differs from the number of rounds, or there are too many rounds.
        """
        from grace_irl.runs.expand.round import ends  # Imported here, because `--help` does not need NumPy.

        asked, expand = self.comparison.keep, self.fit.expand
        if expand.rounds > MOST_KEPT:
            raise InputError(
                f"--expand {expand.rounds}; expected at most {MOST_KEPT} in a comparison: every method keeps as many "
                "policies"
            )
        if asked and expand.rounds and asked != expand.rounds:
            raise InputError(
                f"--keep {asked} with --expand {expand.rounds}; expected none: grace keeps the policy of each round, "
                "and every other method as many"
            )
        steps = self.comparison.steps
        points = ends(steps, asked or expand.rounds or KEEP, expand.growth)
        return tuple(sorted({point for point in points if 0 < point < steps}))

    def digest(self) -> str:
        """SHA-256 (16 hex digits) of all settings."""
        return hashlib.sha256((to_toml(self.comparison) + to_toml(self.fit)).encode()).hexdigest()[:16]

    def acting(self) -> dict[str, object]:
        """The acting settings, such as code to run or a path to read, as JSON values (`grace_irl.runs.acting`)."""
        named = {"env": self.comparison.env, "transfer": [*filter(runs_code, self.comparison.transfer)]}
        named["task"] = self.comparison.task
        own = {key: value for key, value in named.items() if value and (key != "env" or runs_code(str(value)))}
        return plain_acting(self.fit) | {f"compare.{key}": value for key, value in own.items()}


def comparison_of(values: dict[str, object]) -> Comparison:
    """Build the settings of a comparison from values by name; None means the default.

    Raises:
        InputError: a value is invalid, a method is named more than once, or there is no method.
    """
    try:
        found = Comparison.model_validate({key: value for key, value in values.items() if value is not None})
    except ValidationError as error:
        raise InputError(f"comparison {problem_of(error, declared(Comparison))}") from None
    home = {key: os.path.expanduser(getattr(found, key)) for key in ("env", "task", "reward")}
    found = found.model_copy(update={**home, "transfer": tuple(map(os.path.expanduser, found.transfer))})
    if not found.methods or len(set(found.methods)) < len(found.methods):
        raise InputError(
            f"--methods {','.join(found.methods)[:200]!r}; expected different methods with commas between them, such "
            f"as {','.join(ALL)}"
        )
    return found


TASK = "policy.task"


def key_of(text: str) -> str:
    """The key in a text such as "eureka.rounds=2"."""
    return text.partition("=")[0].strip()


def is_search(name: str) -> bool:
    """Whether a compared method is a method of `grace-irl fit`, which searches for a reward."""
    from grace_irl.methods.registry import names

    return name in names()


def told_apart(
    methods: Iterable[str], sets: Iterable[str], fit: str = METHOD
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divide settings into those for `fit.toml` and the rest, such as "eureka.rounds=2".

    The rest are settings that the method of `fit.toml` does not have, but the search of another compared method has.

    Args:
        methods: names of the compared methods.
        sets: the settings, as texts.
        fit: name of the method whose settings `fit.toml` holds.

    Raises:
        InputError: a setting belongs only to methods that are not compared, or to none.
    """
    methods, known = tuple(methods), settings_of(fit)
    found: tuple[list[str], list[str]] = ([], [])
    others = {key for name in methods if is_search(name) for key in settings_of(name)}
    sections = {key.partition(".")[0] for key in others} - {key.partition(".")[0] for key in known}
    for text in sets:
        key = key_of(text)
        if key not in others and key.partition(".")[0] in sections:
            raise InputError(f"setting {key!r} is unknown; {nearest(key, others)}")
        if key not in known and key not in others and (other := other_methods(key, fit)):
            raise InputError(
                f"--set {key}: no effect with the methods {', '.join(methods)}; expected {other} among --methods, or "
                "this setting left out"
            )
        found[key in others and key not in known].append(text)
    return tuple(found[0]), tuple(found[1])


def tuned(comparison: Comparison, method: str) -> dict[str, Any]:
    """The settings that `--tune` gives to one method, by name (`require_tunable`)."""
    found = {}
    for text in comparison.tuned:
        name, _, rest = text.partition(".")
        key, _, value = rest.partition("=")
        if name == method:
            read = parsed(value.strip())
            found[key.strip()] = tuple(read) if isinstance(read, list) else read
    return found


def require_tunable(comparison: Comparison) -> None:
    """Check the settings of `--tune` of a new comparison. A resumed one may no longer compare all of their methods.

    Raises:
        InputError: a setting is not of the form `method.key=value`, or its method is not compared.
    """
    for text in comparison.tuned:
        name, _, rest = text.partition(".")
        key, equals, _ = rest.partition("=")
        if name not in comparison.methods or not key.strip() or not equals:
            raise InputError(
                f"--tune {reprlib.repr(text)}; expected METHOD.KEY=VALUE with one of the methods "
                f"{', '.join(comparison.methods)}, such as airl.demo_batch_size=512"
            )


def read_settings(folder: Path) -> Settings:
    """Read the settings that `Settings.write` wrote.

    Raises:
        InputError: the folder holds no comparison.
    """
    path = folder / "compare.toml"
    if not path.is_file():
        raise InputError(f"{folder}: no compare.toml; expected the folder of a comparison for --resume")
    values = read_toml(path, "what compare wrote")
    return Settings(comparison_of(values), resolve(folder / "fit.toml"))


def authorised_settings(
    folder: Path,
    settings: Settings,
    named: Mapping[str, str | None],
    transfer: tuple[str, ...],
    sets: tuple[str, ...],
    flags: Mapping[str, object],
) -> Settings:
    """The settings of a folder, after a check that the user confirmed all acting settings (`grace_irl.runs.acting`).

    Acting settings run code, read files, send prompts to a server or give trust (such as `expand.trust`). A setting is
    confirmed if this user started the comparison with this setting on this machine, or if the command names it.

    Args:
        folder: folder of the comparison.
        settings: settings in the folder.
        named: environment and task in the user's command, by the keys "env" and "task"; None: not named.
        transfer: further environments in the command.
        sets: other settings in the user's command, as texts such as "data.demos=DIR".
        flags: other settings in the user's command, as values by key.

    Raises:
        InputError: an acting setting is not confirmed. The message names the missing flags.
    """
    try:
        token = (folder / "token").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        token = ""
    kept = acting.kept(token, folder / "token") or {}
    comparison = settings.comparison
    comparison = comparison.model_copy(update={key: value for key, value in named.items() if value is not None})
    known = kept.get("compare.transfer")
    missing = [
        f"--transfer-env {shlex.quote(name)}"
        for name in comparison.transfer
        if runs_code(name) and name not in transfer and not (isinstance(known, list) and name in known)
    ]
    if named["env"] is None and runs_code(comparison.env) and kept.get("compare.env") != comparison.env:
        missing.insert(0, f"--env {shlex.quote(comparison.env)}")
    if named["task"] is None and comparison.task and kept.get("compare.task") != comparison.task:
        missing.insert(0, f"--task {shlex.quote(comparison.task)}")
    if missing:
        raise InputError(
            f"{folder}: this user did not make it on this machine, or not with these settings, so its settings "
            f"are not trusted; expected on the command line: {', '.join(missing)} ({page('security')})"
        )
    if comparison.reward:  # Use the copy in the folder.
        comparison = comparison.model_copy(update={"reward": str((folder / "reward.py").absolute())})
    fit = authorised(settings.fit, str(folder), kept, sets, flags)
    return Settings(comparison, resolve(sets=sets, flags=flags, base=fit))


def located(settings: Settings) -> Settings:
    """Make paths absolute, so that a comparison can be resumed from any directory."""
    comparison = settings.comparison
    places = {
        "env": located_function(comparison.env),
        "transfer": tuple(map(located_function, comparison.transfer)),
        "reward": located_path(comparison.reward),
        "task": located_path(comparison.task) if comparison.task.endswith(".toml") else comparison.task,
    }
    return Settings(comparison.model_copy(update=places), located_run(settings.fit))


def require_task_alone(settings: Settings) -> None:
    """Refuse settings that contradict the task, which determines the environment and the length of episodes.

    Raises:
        InputError: such a setting is given.
    """
    comparison = settings.comparison
    given = {"--env": comparison.env, "--horizon": comparison.horizon, "--expand": settings.fit.expand.rounds}
    named = [flag for flag, value in given.items() if value]
    if comparison.task and named:
        raise InputError(
            f"{' and '.join(named)} with --task; expected --task alone: policies learn in its environment, with its "
            "settings, and its score is of episodes as they end there"
        )


def digest_of(demonstrations: Demonstrations) -> str:
    """SHA-256 (16 hex digits) of the demonstrations, independent of their order."""
    lines = sorted(f"{item.role} {item.task} {item.split} {item.trajectory.digest}" for item in demonstrations)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
