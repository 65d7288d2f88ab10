"""The configuration of a run: its sections, with their settings and defaults."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeVar

from grace_irl.settings import Section, setting

METHOD = "grace"
"""The default method."""
MOST_STEPS = 10**12  # Maximum number of environment steps. A larger number must be a mistake of the user.


Own = TypeVar("Own", bound=Section)


class DataConfig(Section):
    """Demonstrations and their labels."""

    panel: ClassVar[str] = "Data"
    short: ClassVar[bool] = True

    demos: tuple[str, ...] = setting(
        (),
        "Files, folders or Minari ids, such as babyai-go-to-obj; the files state the roles.",
        unit="path",
        common=True,
    )
    experts: tuple[str, ...] = setting(
        (), "Further demonstrations; all count as experts', whatever role they state.", unit="path", common=True
    )
    negatives: tuple[str, ...] = setting(
        (), "Further demonstrations; all count as negative, whatever role they state.", unit="path", common=True
    )
    state_columns: tuple[str, ...] = setting(
        (),
        "Columns of a table (CSV, JSON Lines, Parquet) that are the numbers of a state.",
        unit="name",
        shown="all numbers that are called like nothing else",
        details="Their names become the names of the vector's fields. Several are separated by spaces or commas.",
    )
    episode_column: str = setting(
        "", "Column of a table that numbers the episodes.", unit="name", shown="episode, trajectory, …"
    )
    kind: str = setting(
        "",
        "Kind of state, if the data leave several: image or grid; vector joins a Minari Dict's boxes.",
        shown="what fits the data",
        details="A file that states a kind, as all that grace-irl writes do, decides. Bytes (h, w, 3) that nobody "
        "calls anything count as a grid if no channel has over 16 different values in the whole set, else as images.",
    )
    sample: str = setting(
        "",
        "Size of a sample of whole trajectories to fit, such as 400M; the others test the result.",
        unit="size",
        shown="everything; of a set beyond --max-memory a fifth of that",
        details="The sample keeps small groups (task, role, split) before large ones. It depends on the data and its "
        "size only.",
    )
    label: Literal["", "all", "last", "goal"] = setting(
        "", "Positive expert states: all, last or goal.", shown="what fits the data"
    )
    goals: str = setting(
        "",
        "Goal states for --label goal, by hand or from a run's goals.toml.",
        unit="file",
        shown="the data's marks",
        needs="goals",
        details="If neither the file nor the data mark a trajectory, a model names its goal states.",
    )
    held_out: float = setting(0.25, "Share of the trajectories to hold out, per task and role; 0: none.", ge=0, lt=1)
    validation: float | None = setting(
        None,
        "Share of the training trajectories, per task and role, that no prompt shows and that choose the size.",
        shown="0.25 where a model or a person writes programs, else 0",
        details="At least six of each role must be set aside, or none are. A replay sets aside what its recording did.",
        ge=0,
        lt=1,
    )
    swaps: bool = setting(
        False,
        "Add each expert with another expert's instruction to the negatives, if a simulator calls it wrong.",
        details="Only BabyAI's simulator is asked, about episodes stored as whole grids with their actions.",
    )
    field_names: bool = setting(
        True,
        "Show the names of a vector's fields to whoever writes programs; a model may know them by heart.",
        details="Without names they are x0, x1, …",
    )

    @property
    def files(self) -> tuple[str, ...]:
        """All entries of `experts` and `demos`."""
        return (*self.experts, *self.demos)


class SearchConfig(Section):
    """Requests of every search. A method may add settings of its search to these."""

    panel: ClassVar[str] = "Search"
    short: ClassVar[bool] = True

    samples: int | None = setting(
        None,
        "Programs per call of a model (the server's `n`).",
        flag="samples-per-call",
        unit="programs",
        shown="4 with a server, else 1",
        details="Only of methods that ask for several programs at once, as grace and map-elites do.",
        panel="Model",
        ge=1,
    )
    lag: int | None = setting(
        None,
        "Maximum number of requests in flight.",
        shown="8; with a server 4 times what it writes at once",
        ge=1,
        details="Request i waits for result i - lag, so that a run's outcome does not depend on anyone's speed. "
        "Map-elites and --virtual-loss draw parents from what has arrived: there the default is at most the number of "
        "first programs.",
    )


class StopConfig(Section):
    """Rules that end a run, besides its generations."""

    panel: ClassVar[str] = "Stop rules"
    short: ClassVar[bool] = True

    max_calls: int | None = setting(None, "Maximum number of proposals.", ge=1)
    max_seconds: float | None = setting(
        None, "Wall time of the search, over all sittings.", unit="seconds", common=True, gt=0
    )
    max_tokens: int | None = setting(
        None, "Tokens in and out, of the whole run (of one answer: --answer-tokens).", needs="tokens", ge=1
    )
    max_cost: float | None = setting(
        None, "Cost of the tokens, by --price-in and --price-out, of the whole run.", needs="prices", gt=0
    )
    target_accuracy: float | None = setting(
        1.0, "Train accuracy at which to stop, 0.5 to 1; at 1.0 the states must also be separated.", ge=0.5, le=1
    )
    plateau: int | None = setting(None, "Generations without improvement.", unit="generations", ge=1)


class PlateauConfig(StopConfig):
    """The stop rules of methods that end at a plateau unless a run says otherwise."""

    plateau: int | None = setting(15, "Generations without improvement.", unit="generations", ge=1)


class ProposerConfig(Section):
    """The author of the programs."""

    panel: ClassVar[str] = "Search"
    short: ClassVar[bool] = True

    name: str = setting(
        "",
        "Author of the programs: synthesis (no model), llm (--llm-url), manual (prompt files for a person) or "
        "drafts (parts drawn without a look at labels, to compare searches).",
        flag="proposer",
        shown="llm with --llm-url, else synthesis",
    )
    seed_synthesis: int = setting(
        0, "Number of initial programs that the synthesiser writes.", unit="programs", needs="another author", ge=0
    )
    start_from: tuple[str, ...] = setting(
        (), "Reward files, or folders of runs (their best programs), to try first.", unit="path", needs="new answers"
    )
    recording: str = setting(
        "", "Folder of a run, or a recording, for `replay`; --replay sets it.", flag="", unit="path", needs="replay"
    )


class ModelConfig(Section):
    """The language model and its prompts (docs/models.md)."""

    panel: ClassVar[str] = "Model"
    needs: ClassVar[str] = "a model"
    short: ClassVar[bool] = True

    url: str = setting(
        "",
        "An OpenAI-compatible server, such as http://127.0.0.1:8000; its key comes from GRACE_IRL_API_KEY or "
        "OPENAI_API_KEY.",
        details="With --proposer llm and no server named here, OPENAI_BASE_URL names it.",
        flag="llm-url",
        unit="url",
        shown="none",
        common=True,
    )
    name: str = setting(
        "",
        "The model, as the server names it.",
        flag="model",
        unit="name",
        shown="the only one that it serves",
        common=True,
    )
    temperature: float = setting(0.8, "Sampling temperature.", ge=0, le=10)
    answer_tokens: int = setting(4096, "Maximum number of tokens in one answer.", unit="tokens", ge=1)
    concurrency: int = setting(32, "Maximum number of calls in flight.", unit="calls", ge=1, le=1000)
    answer_format: Literal["auto", "code", "json"] = setting(
        "auto", "code, json, or auto: the server is tried once per run.", needs="prompts"
    )
    repair: bool = setting(True, "Send a program that fails back once, with its traceback.", needs="prompts")
    repairs: int = setting(
        1, "Maximum number of times that a failing program is sent back.", needs="prompts", ge=1, le=100
    )
    patience: float = setting(
        600.0,
        "Time to wait for a server that went away, before the run stops.",
        flag="llm-patience",
        unit="seconds",
        ge=0,
    )
    timeout: float = setting(600.0, "Time of one call.", flag="model-timeout", unit="seconds", gt=0)
    prompt_tokens: int = setting(
        24_000,
        "Maximum number of tokens in a prompt; fewer if the server's context is smaller.",
        unit="tokens",
        needs="prompts",
        ge=500,
    )
    prompt_scale: float = setting(
        1.0,
        "Share of a prompt's usual length; 0.25 makes prompts of a quarter of the tokens.",
        needs="prompts, no task",
        gt=0,
        le=1,
    )
    context: str = setting(
        "",
        "A text file for every prompt: what you know and the data do not say.",
        unit="file",
        shown="none",
        needs="prompts",
    )
    images: bool = setting(False, "Send pictures of states as well, to a model that sees.", needs="prompts, no task")
    price_in: float = setting(
        0.0, "Price of a million tokens of prompts, in any currency; 0 counts no cost.", needs="tokens", ge=0
    )
    price_out: float = setting(0.0, "Price of a million tokens of answers.", needs="tokens", ge=0)


class ExpandConfig(Section):
    """New negatives from a policy that learns from the reward, round after round (docs/expansion.md)."""

    panel: ClassVar[str] = "Expansion"
    needs: ClassVar[str] = "expansion"

    rounds: int = setting(
        0,
        "Rounds in which PPO learns from the reward, its rollouts become negatives, and the search goes on.",
        flag="expand",
        needs="",
        unit="rounds",
        common=True,
        ge=0,
        le=10_000,
    )
    env: str = setting(
        "",
        "Environment in which PPO learns: a Gymnasium id, or file.py:function.",
        flag="env",
        unit="id",
        shown="the demonstrations' own",
    )
    steps: int = setting(
        100_000, "Environment steps of all rounds together.", flag="env-steps", unit="steps", ge=1, le=MOST_STEPS
    )
    growth: float = setting(
        1.0,
        "Length of each round, in steps, as a multiple of the round before it.",
        ge=1,
        le=10,
        details="1 makes all rounds equal (GRACE's N / M). Above 1, holes in the reward are found early, and most "
        "steps are left for learning from the mended reward.",
    )
    episodes: int = setting(20, "Maximum number of rollouts that a round adds.", flag="rollouts", unit="episodes", ge=1)
    enough: float = setting(
        0.99,
        "Accuracy on a round's new negatives from which the reward stays as it is.",
        gt=0.5,
        le=1,
        details="The discriminator must also give the right answer this chance: a fitness of at least 2 log `enough`. "
        "A threshold may separate states of which the discriminator is unsure, and a policy is still paid for those.",
    )
    alike: float = setting(
        0.6,
        "A rollout is no negative if a classifier tells its states from the expert's with at most this chance.",
        ge=0.5,
        le=1,
        details="0.5 means that the classifier cannot tell them apart.",
    )
    form: Literal["auto", "raw", "guided", "logit", "probability", "soft", "progress"] = setting(
        "auto",
        "Form in which the policy gets the reward: auto, raw, guided, logit, probability, soft or progress.",
        details="`logit` and `probability` are the discriminator's, `soft` is a softened probability "
        "(`grace_irl.rewards.scale`). `auto` is `soft` if all expert states are positive: it is above 0 everywhere, so "
        "that ending an episode early, which experts do not do, never pays. If only goal states are positive, `auto` "
        "is `guided`: it pays rewards above the threshold or below 0 as they are; other rewards are earned once, by "
        "the step that reaches the state, and lost by the step that leaves it. `progress` pays the rise of all.",
    )
    reshape: int = setting(
        3,
        "If learning stalls, ask for this many versions of the reward that rise steadily towards the goal.",
        flag="online-reshape",
        unit="programs",
        ge=0,
        details="The next round trains a new policy on the one that rises most steadily. Only with the labels `last` "
        "and `goal`; 0: none.",
    )
    carry: Literal["auto", "always", "never"] = setting(
        "auto",
        "Whether training under a new reward starts from an earlier policy.",
        details="It starts from the last policy or, if all expert states are positive, from the policy of all rounds "
        "that the new reward pays most. `auto`: if actions are continuous; a policy of discrete actions is sure of "
        "itself by then, and no longer explores.",
    )
    trust: bool = setting(
        False, "Run the reward in this process while PPO learns, not in the sandbox: faster.", flag="trust-reward"
    )


class SandboxConfig(Section):
    """The sandbox in which programs run."""

    panel: ClassVar[str] = "Run"

    workers: int | None = setting(None, "Sandbox workers.", flag="workers", shown="one per core", ge=1)
    allow_weak: bool = setting(
        False,
        "Run programs even if this machine cannot confine them (see grace-irl doctor).",
        flag="allow-weak-sandbox",
    )
    wall_s: float = setting(
        10.0, "Wall time of one run of a program, besides 5 ms for each state.", unit="seconds", gt=0
    )
    cpu_s: float = setting(10.0, "CPU time of one run of a program, besides 1 ms for each state.", unit="seconds", gt=0)
    memory_mb: int = setting(512, "Memory of one run of a program, beyond the worker's own.", unit="MiB", ge=1)


class Config(Section):
    """The configuration of a run. A method adds sections, or extends `search` and `stop` (`runs.config.config_of`)."""

    method: str = setting(
        METHOD,
        "Method: grace, map-elites, rf-agent, forge, eureka, revolve, policy-evolution, random, or one of another "
        "distribution; fit --method NAME --help shows its flags. All but grace also find rewards for a task (--task), "
        "without demonstrations.",
        flag="method",
        panel="Search",
        common=True,
    )
    seed: int = setting(
        0, "Seed of the split, the search and the proposer.", flag="seed", panel="Run", common=True, ge=0
    )
    data: DataConfig = DataConfig()
    search: SearchConfig = SearchConfig()
    stop: StopConfig = StopConfig()
    proposer: ProposerConfig = ProposerConfig()
    model: ModelConfig = ModelConfig()
    expand: ExpandConfig = ExpandConfig()
    sandbox: SandboxConfig = SandboxConfig()

    def own(self, kind: type[Own]) -> Own:
        """The section of the class `kind`, which the method added."""
        return next(value for _, value in self if isinstance(value, kind))
