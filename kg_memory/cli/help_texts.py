"""The long texts of the command line's help: examples and details, shown below the options of each command."""

from __future__ import annotations

# Most names are written out, as what they name takes longer to import than the help takes to be read.
SEARCHES = ("default", "words", "meaning", "hybrid", "facts", "overview", "routed", "pagerank", "synapse")
RERANKERS = (
    "confidence",
    "cross_encoder",
    "decay",
    "distance",
    "diversity",
    "half_life",
    "importance",
    "mentions",
    "recency",
    "time",
    "trust",
    "use",
    "chain",
)
RECIPES = (*SEARCHES, *RERANKERS)
TEMPLATES = ("plain", "zep", "xml", "json", "zeph")
SHARED_FIELDS = ("thread", "source", "source_id", "speaker", "kind", "trust", "said_at", "type", "name", "predicate")
FIELDS = (*SHARED_FIELDS, "fact_kind", "edge_type", "confidence", "valid_at", "invalid_at", "created_at", "expired_at")

START = """\
start here:
  kg-memory init                                   choose model, database and namespace
  kg-memory demo                                   watch a small story become a graph
  kg-memory ingest chat.jsonl                      remember a conversation
  kg-memory ask "Where does Ann live?"             ask about it, now or --on "last March"
  kg-memory doctor                                 check the set-up

Without a model everything runs offline, by rules. With OPENAI_API_KEY set, or --model and
KG_MEMORY_BASE_URL, a language model reads. All settings are variables too: KG_MEMORY_URL,
KG_MEMORY_DATA_DIR, KG_MEMORY_MODEL and so on; init writes them to .env.
"""
INIT = """\
The commands read .env of the folder that they run in, or the file that KG_MEMORY_ENV_FILE names, if only you can read
it. The environment and options count more. A key is asked for, and not shown; with --yes it stays in the environment.

examples:
  kg-memory init
  kg-memory init --yes --model offline --database embedded -n ann
  kg-memory init --yes --base-url http://localhost:11434/v1 --model qwen3 --database falkor://db:6379
"""
COMPLETION = """\
examples:
  source <(kg-memory completion bash)                                       in ~/.bashrc
  kg-memory completion zsh > ~/.zfunc/_kg-memory                            with fpath+=~/.zfunc in ~/.zshrc
  kg-memory completion fish > ~/.config/fish/completions/kg-memory.fish
"""
INGEST = """\
formats, recognised from the content:
  jsonl      one object a line: {"content": "...", "speaker": "Ann", "at": "2024-05-01T10:00:00Z",
             "thread": "t1", "source_id": "m1", "labels": {"agent": "support"}};
             only the content (or text) is required
  openai     [{"role": "user", "content": "..."}], or {"messages": [...]}
  langchain  dumped messages: {"type": "human", "data": {...}} or the lc constructor form
  locomo     a LoCoMo file; thread <sample_id>/session_<n>, id <sample_id>/<dia_id>
  beam       a BEAM chat.json
  chat       plain text, "Ann: hello" or "[2024-05-01 10:00] Ann: hello"
  text       any other text: one episode
  json       other JSON: one episode a record
exports of chats, as files, folders or zips; each conversation becomes a thread:
  chatgpt, claude, open-webui, gemini, assistants, sharegpt, messages (lists of {"messages": [...]}),
  telegram, slack, discord, whatsapp
JSON that looks like a conversation in another form is refused; --records remembers it as records.
Of message lists, what user and assistant say is kept; system prompts and tool calls are not.

Lines that are no message or record are left out and listed, and the exit code is 0; --strict refuses the file instead.
Episodes that are saved but could not be read are listed, and the exit code is 1; the same command tries them again.
Ctrl-C stops at once and loses nothing: the same command goes on where it stopped.

examples:
  kg-memory ingest chat.jsonl
  kg-memory ingest notes.txt --format text --at 2024-05-01
  kg-memory ingest *.json --namespace ann@example.com --strict
  kg-memory ingest chatgpt-export.zip --dry-run
  kg-memory ingest "WhatsApp Chat with Bo.txt" --date-order dmy
"""
DECLARE = """\
A row of a file has the fields subject, predicate, object, valid_at, invalid_at, sentence, source, source_id,
confidence, trust, at, labels, expires_at, subject_type and object_type; the first two are needed. In CSV and TSV the
first line names them. With --mapping the rows are records of yours; see docs/declared.md for the paths in a mapping.
All rows are checked before the first is saved. The same file again states nothing twice.

examples:
  kg-memory declare Ann WORKS_AT Acme --valid-at 2024-05
  kg-memory declare Ann "is retired" --valid-at 2024
  kg-memory declare Ann "commutes to" Oslo --rests-on 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11
  kg-memory declare --file people.csv --source crm
  kg-memory declare --file employees.jsonl --mapping mapping.json
"""
TIMES = """\
A TIME or PERIOD is a date (2019, 2019-05, 2019-05-03, 2019-05-03T18:00) or words, English or Chinese
("last March", "two weeks ago", "上个月"), in UTC. A PERIOD may also be FROM..UNTIL, with either end left out;
UNTIL is not part of it: 2019..2021 is two years.
"""
ASK = f"""\
examples:
  kg-memory ask "Where does Ann live?"
  kg-memory ask "Where did Ann live?" --on 2023-12-24
  kg-memory ask "Where did Ann live in 2019?" --explain
  kg-memory ask "小明住在哪里？" --during 2019..2021 --limit 3 --json
  kg-memory ask "Who moved?" --where '{{"speaker": "Ann", "said_at": {{"$gte": "2024-01-01"}}}}'
  kg-memory ask "Who likes jazz?" --near Ann --recipe distance
  kg-memory ask "Where does Ann live?" --context > memory.txt

recipes, which search and rank each in its way:
  {", ".join(SEARCHES)},
  {", ".join(RERANKERS)}
forms of a context:
  {", ".join(TEMPLATES)}
fields of a filter, joined by $and, $or and $not, compared by $eq, $ne, $in, $nin, $gt, $gte, $lt and $lte:
  {", ".join(SHARED_FIELDS)},
  {", ".join(FIELDS[len(SHARED_FIELDS) :])}, labels.KEY

{TIMES}"""
RESUME = """\
What import and save left unread, or what a run that was stopped saved but did not finish, is read, earliest first. Run
it again after Ctrl-C: it goes on where it stopped. What failed waits for kg-memory retry.

examples:
  kg-memory resume -n ann
  kg-memory resume -n ann --plan economy
"""
RETRY = """\
examples:
  kg-memory episodes --state failed --ids
  kg-memory retry

What a model has answered before is not asked, or paid, again.
"""
DEEPEN = """\
examples:
  kg-memory deepen --dry-run
  kg-memory deepen --to thorough --limit 100

From the cheapest: offline, economy, standard, thorough. Facts that are found again are not doubled;
those that are not stay. Ctrl-C loses nothing: the same command goes on where it stopped.
"""
FACTS = f"""\
examples:
  kg-memory facts Ann
  kg-memory facts Ann --on 2023-12-24
  kg-memory facts --where '{{"predicate": "LIVES_IN"}}'
  kg-memory facts Ann --during "last year" --believed-at 2024-06-01

{TIMES}"""
AROUND = f"""\
examples:
  kg-memory around Ann
  kg-memory around Ann --steps 3 --on 2023

{TIMES}"""
ENTITIES = """\
Two that are one are merged, one that is two is split by its facts or messages; both can be undone, and are kept with
your name. An entity is named, or given by its id where several have the name.

examples:
  kg-memory entities --ids
  kg-memory entities merge "Robert Chen" Bob --reason "he told me"
  kg-memory entities split Anna --episode 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11 --as "Anna Berg"
  kg-memory entities decisions
  kg-memory entities undo 3f2a
"""
COMMUNITIES = """\
examples:
  kg-memory communities
  kg-memory communities --refresh
  kg-memory communities Ann --svg ann.svg

Communities are found in the facts that are so now. A refresh summarises only those that changed; who is new
joins one meanwhile. Those of a higher level are made of those below.
"""
HISTORY = """\
examples:
  kg-memory history Ann
  kg-memory history Ann "lives in" --believed-at "last month"
"""
TIMELINE = "example:\n  kg-memory timeline Ann"
CHANGES = """\
examples:
  kg-memory changes
  kg-memory changes --since yesterday
  kg-memory changes --since 2024-05-01 --until 2024-06-01

The times are those when the memory learned of it, not those when it was so in the world.
"""
EVOLUTION = """\
example:
  kg-memory facts Ann --ids
  kg-memory evolution 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11
"""
CONSEQUENCES = """\
example:
  kg-memory facts Polaris --ids
  kg-memory consequences 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11
"""
WATCH = """\
examples:
  kg-memory watch -n ann
  kg-memory watch --once
  kg-memory watch --json | jq .event
"""
RETRACT = """\
What was believed until then is kept, with its sources, and the decision with your name. It is undone like that about a
verdict: kg-memory review --undo ID.

examples:
  kg-memory retract 3f2a9c0d-1e4b-5a7d-9c1e-0b1f6d0e6d0c --reason "she says that she never lived there"
  kg-memory replace 3f2a9c0d-1e4b-5a7d-9c1e-0b1f6d0e6d0c "Ann lives in Bergen." """
PREDICATES = """\
examples:
  kg-memory predicates
  kg-memory predicates "likes best" --as PREFERS
  kg-memory predicates MANAGES --several
"""
REVIEW = """\
A fact ends or refutes another at once only if the memory is sure of that; else the verdict waits here, and both facts
are shown as disputed. With KG_MEMORY_DISPUTES=withhold no answer has the later one unless --unreviewed asks for it.
At a terminal one after the other is shown and decided by a key. Who decided, when and why is kept, and can be undone.
An ID may be shortened as long as it names only one.

examples:
  kg-memory review
  kg-memory review --list --json
  kg-memory review --decided
  kg-memory review --accept 3f2a --reason "she told me herself"
  kg-memory review --edit 3f2a --verdict complements --valid-at 2019-05
"""
FORGET = """\
What goes is shown first, and cannot be brought back: the text, and all that only it supports. What other messages say
too stays, as if this one had never been said. A fact goes with every message that states it, an entity with every one
that names it, the whole message. The exit code is 1 where something of it is left. The log
of it has no text: kg-memory audit.

examples:
  kg-memory episodes --ids
  kg-memory forget --episode 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11
  kg-memory forget --episode 0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11 --span 10:24
  kg-memory forget --fact 7c2a91d4-0a55-5f0e-8f0e-3f8e2b7d4c10 --dry-run
  kg-memory forget --entity "Ann Smith" --reason "asked for, ticket 4711"
  kg-memory forget --everything -n ann --yes
"""
SAVED = """\
A saved memory is a fact that holds now. Delete shows what goes along with it first, asks, and forgets it as kg-memory
forget --fact does: it cannot be brought back. Off remembers nothing new, in any process, until on.

examples:
  kg-memory saved -n ann
  kg-memory saved source 7c2a91d4-0a55-5f0e-8f0e-3f8e2b7d4c10
  kg-memory saved delete 7c2a91d4-0a55-5f0e-8f0e-3f8e2b7d4c10
  kg-memory saved off
"""
AUDIT = """\
The log has no text of what was forgotten, and ids, names and namespaces only as salted hashes. Each entry has the hash
of the one before. That the end was not cut off shows only by a hash from a receipt, which you kept elsewhere.

examples:
  kg-memory audit
  kg-memory audit -n ann
  kg-memory audit verify --head HASH
"""
EVICT = """\
Nothing goes that is not asked for. Messages stay as they were said. What is evicted loses its words and vectors: it is
still told where it is asked for by name, and searches find it again once it is stated or mentioned anew.

examples:
  kg-memory evict --expired-days 90 --orphans --dry-run
  kg-memory evict --expired-days 90 --expired-episodes
  kg-memory evict --max-entities 50000
"""
EXPORT = """\
The file has all that the namespace holds, as it is at one moment, and appears when it is whole; docs/export.md
describes it. A name that ends with .gz compresses. graphml and cytoscape are pictures to look at: entities, and
what is believed of them.

examples:
  kg-memory export ann.jsonl.gz -n ann
  kg-memory export - --no-embeddings | gzip > ann.jsonl.gz
  kg-memory export ann.graphml --format graphml
"""
IMPORT = """\
An export is there at once, or not at all. A namespace that holds something is refused, unless
--replace lets it go. Without --namespace it is that of the export.

From zep, graphiti, memvara, mem0, langmem, letta and csv, records are added to what is there; the same command again
adds only what is missing. Facts are declared, and no model is asked. Sentences are read as messages are, or saved with
--no-read. docs/moving_in.md describes the files.

examples:
  kg-memory import ann.jsonl.gz
  kg-memory import ann.jsonl.gz --namespace copy
  kg-memory import falkor://localhost:6379#default_db --from graphiti
  kg-memory import neo4j.json --from graphiti --group ann
  kg-memory import zep.jsonl --from zep --namespace ann
  kg-memory import mem0.json --from mem0 --group ann --namespace ann
  kg-memory import agent.af --from letta --namespace ann
"""
