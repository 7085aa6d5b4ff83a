"""All settings, in one frozen value; `Settings.from_env` is the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self, get_args, get_type_hints

from kg_memory.errors import SettingsError
from kg_memory.models.budget import NO_BUDGET, Budget
from kg_memory.models.graph import ConflictStrategy
from kg_memory.text.redaction import RedactHook, resolve_hooks

ENV_PREFIX = "KG_MEMORY_"
OFFLINE = "offline"
PLANS = (OFFLINE, "economy", "standard", "thorough")
"""How an episode may have been read, the cheapest first."""
LONGEST_TTL = 100 * 365 * 24 * 3600.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class EntityType:
    """An entity type of the ontology: its name, and when to use it."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class FactType:
    """A fact type of the ontology: its predicate, the entity types it may join, and its meaning.

    Fact types are preferred where they fit; other predicates stay allowed (Zep 2.2.2).
    """

    name: str
    description: str
    signature: tuple[tuple[str, str], ...] = ()
    one_at_a_time: bool | None = None
    """Whether a subject has one object of it at a time ("lives in"); found out where it is ``None``."""


ENTITY_TYPES = (
    EntityType("Entity", "anything that fits no other type"),
    EntityType("Person", "a human being, by name or by role"),
    EntityType("Organization", "a company, team, school, club or authority"),
    EntityType("Place", "a city, country, address, building or region"),
    EntityType("Event", "something that happens at a time, with a name or a clear description"),
    EntityType("Product", "a tool, device, work, brand or other thing that can be named"),
    EntityType("Topic", "a field, activity, interest or idea"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set; each field is also the variable ``KG_MEMORY_<FIELD>``.

    Durations are in seconds, sizes in characters unless said otherwise.
    """

    url: str | None = None
    """``falkor://``, ``falkors://`` (TLS) or ``unix://`` of a server; ``None`` is the embedded one."""
    replica_url: str | None = None
    """A replica of the server at `url`, which searches are answered by: what was added some moments ago may be missing
    there. One that fails is left alone for half a minute, and the server at `url` answers."""
    data_dir: Path | None = None
    """Folder of the embedded database; the platform's user data folder when ``None``."""
    xdg_data_home: str | None = None
    """Where the platform's user data folder is not in its usual place: ``XDG_DATA_HOME``. Ignored on macOS."""
    bin_dir: Path | None = None
    """Folder with ``redis-server`` and ``falkordb.so``; looked for when ``None``."""
    fsync: Literal["always", "everysec"] = "always"
    idle_seconds: float = 300.0
    """How long the embedded server lingers after its last client left."""
    allow_old_falkordb: bool = False

    model: str | None = None
    """A chat model's name, or ``offline``; when ``None``, OpenAI's if there is a key, else ``offline``."""
    base_url: str | None = None
    """An OpenAI-compatible server; OpenAI itself when ``None``."""
    api_key: str | None = field(default=None, repr=False)
    model_timeout: float = 60.0
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """How much the whole process asks of one model on one server at most, spread evenly; the embedding model likewise.
    When ``None``, as much as the server takes: its refusals and headers tell."""
    max_answer_tokens: int | None = None
    """Where an answer is cut off; set it for small models, which may never end by themselves."""
    embedding_model: str | None = None
    """An embedding model's name, or ``offline``; follows `model` when ``None``."""
    embedding_base_url: str | None = None
    embedding_dimensions: int | None = None

    rerank_url: str | None = None
    """A rerank endpoint (``https://.../v1/rerank``) for recipes with a cross-encoder."""
    rerank_model: str | None = None
    """The model that it shall use; without `rerank_url`, a chat model that scores instead, `model` when ``None``."""
    rerank_api_key: str | None = field(default=None, repr=False)

    plan: Literal["economy", "standard", "thorough"] = "standard"
    """How much is asked about an episode. ``economy``: the entities and facts of several messages of a thread in one
    question, for which they wait for each other. ``standard``: those of one in one question, which also looks for what
    it missed. ``thorough``: step by step, as the paper does (Zep 2.2). The offline model reads step by step."""
    parallel: int = 16
    """How many questions are asked at once, at most, of one call that reads many episodes, or a long one."""
    window: int = 8
    """How many messages of a thread are read in one question, by the plan ``economy``: so many wait for each other."""
    window_seconds: float = 300.0
    """How long a message waits for others, at most, where another of its thread comes; `resume` reads what waits."""
    previous_messages: int = 4
    """How many earlier messages of the thread the extraction sees (Zep 2.2.1: n = 4)."""
    reflections: int = 1
    """How many times the extraction looks for what it missed, by the plan ``thorough``."""
    merge_threshold: float | None = None
    """Cosine similarity of names from which two entities are one without asking; by the embedding model if ``None``."""
    ask_threshold: float | None = None
    """Cosine similarity of names from which the model is asked whether two entities are one; likewise."""
    candidates: int = 10
    """How many known entities or facts a new one is compared with, at most."""
    conflict_strategy: ConflictStrategy = "recency"
    """Which of two facts that conflict is believed: the one said last; or first the surer one, the model's choice or
    the one from the better trusted episode, and the one said last where these leave it open."""
    auto_threshold: float = 0.85
    """Confidence from which a verdict about two facts takes effect at once."""
    review_threshold: float = 0.5
    """Confidence from which a verdict waits for review by a person; what is less sure is ignored. Set it to
    `auto_threshold` where nobody reviews."""
    temporal_decay_rate: float = 0.0
    """How much newer facts and episodes are preferred (C33): 0 is not at all, 10 the most."""
    abstain_below: float = 0.0
    """A context is left empty where the memory less probably holds an answer (`SearchResults.relevance`); 0 is
    never."""
    surprise_threshold: float = 0.0
    """A short message is not read where it lies nearer than this to the average of the earlier ones that it would be
    read with, 0 to 2 (C51). 0 is off; what suits differs by embedding model: `docs/plans.md` has a value for one."""
    max_skip_turns: int = 5
    """After how many messages in a row that were not read the next one is, however little it surprises."""
    read_all: bool = False
    """Whether also those episodes are read that would be skipped, such as greetings."""
    trusted_sources: tuple[str, ...] = ()
    """Sources (`EpisodeInput.source`) whose episodes are read though they look like prompt injections; ``*`` is all."""
    redact: RedactHook | str | None = None
    """What takes secrets out of messages before all else: a function, or ``secrets`` and ``personal``, the built-in
    ones; see `kg_memory.text.redaction`."""
    telemetry: bool = False
    """Whether spans and metrics are made for OpenTelemetry, without texts and namespaces: see
    `kg_memory.runtime.telemetry`."""
    budget: Budget = NO_BUDGET
    """How much reading may cost; in the environment ``KG_MEMORY_BUDGET_DAY_MONEY`` and so on, see `Budget`."""
    default_ttl: float | None = None
    """Seconds after which a message expires that is added without an `expires_at` of its own: `evict` then forgets it.
    Messages never expire by themselves when ``None``."""
    note_linking: bool = False
    """Whether entities that are new are linked with those that have names of near meaning, after each message (C50)."""
    note_link_threshold: float | None = None
    """Cosine similarity of names from which two entities are linked; ``None``: by the embedding model, mostly 0.85."""
    note_link_most: int = 10
    """With how many entities a new one is linked, at most."""
    note_link_seconds: float = 5.0
    """How long the linking after one message may take: what is not linked by then is left out."""
    max_content: int = 1_000_000
    chunk_size: int = 6_000
    """Longer content is read in pieces of about this size, split where the text has a joint."""
    max_entities: int = 100
    max_facts: int = 100
    """How many entities and facts are kept of one piece; the rest is dropped and reported."""
    community_refresh_interval: int = 0
    """After how many new episodes communities are found anew by themselves, at the end of the call that adds the last
    of them (C34). 0 is never: a refresh asks about each community that changed, and comes due amid other work."""
    max_community_bytes: int = 16_384
    """How much one question tells of communities, in bytes: of several, or a part of one that is larger (C39)."""
    entity_types: tuple[EntityType, ...] = ENTITY_TYPES
    fact_types: tuple[FactType, ...] = ()
    instructions: str = ""
    """The user's own additions to the extraction prompts."""

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the settings from ``KG_MEMORY_*``, OpenAI's own key and URL variables, and ``XDG_DATA_HOME``.

        Errors: `SettingsError` names the variable that is wrong.
        """
        environment = MappingProxyType(dict(os.environ if environment is None else environment))
        hints = get_type_hints(cls)
        found: dict[str, Any] = {}
        for each in fields(cls):
            text = environment.get(ENV_PREFIX + each.name.upper())
            if text and each.name not in ("entity_types", "fact_types", "budget"):
                found[each.name] = _parse(each.name, text, str(hints[each.name]))
        found["budget"] = Budget.from_env(environment)
        found.setdefault("api_key", environment.get("OPENAI_API_KEY"))
        found.setdefault("xdg_data_home", environment.get("XDG_DATA_HOME"))
        found.setdefault("base_url", environment.get("OPENAI_BASE_URL") or environment.get("OPENAI_API_BASE"))
        return cls(**found)

    def with_(self, **changes: Any) -> Self:
        """Return a copy with *changes*; those that are ``None`` are left as they are."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Errors: `SettingsError` names the setting and what it may be.
        """
        if self.fsync not in ("always", "everysec"):
            raise SettingsError(f"fsync is {self.fsync!r}: set it to 'always' or 'everysec'")
        self._check_urls()
        self._check_thresholds()
        self._check_choices()
        self._check_rates()
        resolve_hooks(self.redact)
        if not 0 <= self.temporal_decay_rate <= 10:  # a NaN is refused too
            raise SettingsError(f"temporal_decay_rate is {self.temporal_decay_rate}: set it from 0 to 10")
        if not 0 <= self.surprise_threshold <= 2:
            raise SettingsError(f"surprise_threshold is {self.surprise_threshold}: set it from 0 to 2")
        if not 0 <= self.abstain_below <= 1:
            raise SettingsError(f"abstain_below is {self.abstain_below}: set it from 0 to 1")
        counts = ("previous_messages", "reflections", "max_skip_turns", "community_refresh_interval")
        for name in ("idle_seconds", "window_seconds", *counts):
            if not getattr(self, name) >= 0:  # a NaN is refused too
                raise SettingsError(f"{name} is {getattr(self, name)}: set it to 0 or more")
        sizes = ("candidates", "max_content", "max_entities", "max_facts", "max_community_bytes", "chunk_size")
        for name in (*sizes, "model_timeout", "parallel", "window", "note_link_most", "note_link_seconds"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} is {getattr(self, name)}: set it above 0")
        if not self.entity_types:
            raise SettingsError("entity_types is empty: give at least one EntityType, the first is the default")

    def _check_urls(self) -> None:
        for name in ("base_url", "embedding_base_url", "rerank_url"):
            url = getattr(self, name)
            if url is not None and not url.startswith(("http://", "https://")):
                raise SettingsError(f"{name} is {url!r}: begin it with http:// or https://")
        if self.replica_url is not None and not self.replica_url.startswith(("falkor://", "falkors://", "unix://")):
            raise SettingsError(f"replica_url is {self.replica_url!r}: begin it with falkor://, falkors:// or unix://")

    def _check_thresholds(self) -> None:
        lower = 0 if self.ask_threshold is None else self.ask_threshold
        upper = 1 if self.merge_threshold is None else self.merge_threshold
        if not 0 <= lower <= upper <= 1:
            raise SettingsError(
                "thresholds must satisfy 0 <= ask_threshold <= merge_threshold <= 1: change one of them"
            )
        if not 0 <= self.review_threshold <= self.auto_threshold <= 1:
            raise SettingsError(
                "thresholds must satisfy 0 <= review_threshold <= auto_threshold <= 1: change one of them"
            )
        if self.note_link_threshold is not None and not 0 <= self.note_link_threshold <= 1:
            raise SettingsError(f"note_link_threshold is {self.note_link_threshold}: set it from 0 to 1")

    def _check_rates(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise SettingsError(f"{name} is {limit}: set it above 0, or leave it out")
        if self.default_ttl is not None and not 0 < self.default_ttl <= LONGEST_TTL:
            raise SettingsError(f"default_ttl is {self.default_ttl}: set it above 0, up to {LONGEST_TTL:.0f} seconds")

    def _check_choices(self) -> None:
        if not isinstance(self.budget, Budget):
            raise SettingsError(f"budget is {self.budget!r}: give a Budget, such as Budget(day=Limits(calls=1000))")
        hints = get_type_hints(type(self))
        for name in ("conflict_strategy", "plan"):
            value, choices = getattr(self, name), get_args(hints[name])
            if value not in choices:
                raise SettingsError(f"{name} is {value!r}: set it to one of {', '.join(choices)}")


def _parse(name: str, text: str, hint: str) -> Any:
    """Return *text* as the setting *name* wants it, by the words of its type *hint*."""
    try:
        if "bool" in hint:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        if "int" in hint:
            return int(text)
        if "float" in hint:
            return float(text)
        if hint.startswith("tuple[str"):
            return tuple(name for each in text.split(",") if (name := each.strip()))
        return Path(text).expanduser() if "Path" in hint else text
    except (ValueError, KeyError):
        kind = "yes or no" if "bool" in hint else "a number"
        raise SettingsError(f"{ENV_PREFIX}{name.upper()} is {text!r}: set it to {kind}, or unset it") from None
