// Written by `npm run generate` from the OpenAPI description of the server. Do not edit.

export interface paths {
    "/api/graph/global": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read All
         * @description Return the graph of a namespace, as of a time or of all time; facts that only quote are left out.
         */
        get: operations["graph.global"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/graph/{entity_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read Around
         * @description Return the part of the graph within `depth` steps of an entity, which is given by id or name.
         */
        get: operations["graph.around"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Forget
         * @description Return what would be forgotten, and a hash of it as `plan`. With that hash in `confirm`, delete it for good.
         *
         *     If the plan has changed meanwhile, nothing is deleted, and the answer is 409.
         */
        post: operations["privacy.forget"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/episodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the episodes (stored messages, texts and records) of a namespace, latest first.
         * @description *where* is a filter, such as ``{"source": "mail"}``; see `kg_memory.models.filters`. *limit* is the maximum
         *     number of episodes; *skip* is how many to leave out before. *characters* limits their total length: the list
         *     ends with the episode that reaches it. *status* is one `EpisodeStatus` or several; None is all. Raises
         *     `InputError`.
         */
        get: operations["episodes.list"];
        put?: never;
        /**
         * Save One
         * @description Save one episode. It is stored when this answers, and read into facts afterwards.
         */
        post: operations["episodes.save"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/episodes/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Save Many
         * @description Save up to 1,000 episodes in order. `Location` is the last one, which is read last.
         */
        post: operations["episodes.save_many"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export
         * @description Export everything in the namespace, as it is at one moment, as a file that `import` accepts.
         *
         *     `graphml` and `cytoscape` files are for viewers and cannot be imported.
         */
        get: operations["data.export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import
         * @description Import a file made by `export`, compressed or not. Readers see either all of it or none.
         */
        post: operations["data.import_"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/import/{origin}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import From
         * @description Import an export of another memory product.
         *
         *     Its texts are saved as episodes, which are read in the background.
         */
        post: operations["data.import_from"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Events
         * @description Stream changes of a namespace as server-sent events: episodes, facts, and the cost of reading.
         */
        get: operations["events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search for *question*, and return the matching facts, entities, communities and episodes.
         * @description *namespace* is the memory to search, or a list of several, such as ``["ann", "team-red"]``: these get one
         *     ranking, and each result its `namespace`. Each kind has at most *limit* results, best first. Without times, only
         *     facts that hold now are returned.
         *     *as_of* is a time at which facts must hold; *during* a period in which they must hold at some time: two times,
         *     or words such as ``"last March"``. *believed_at* searches what was believed at that time. `Facts` has the
         *     formats of times. For a past time, summaries of entities and communities are left out: they describe the
         *     present. Time words in *question* itself ("in 2019") only change the order.
         *     *unreviewed* includes facts that wait for a person's review. *thread* is the id of the conversation that asks:
         *     entities mentioned there last rank higher.
         *     *center* is the name of an entity, or a list of names, near which to search. *asker* is the name of the person
         *     whom "I", "my" and "the user" in the question mean.
         *     *where* filters the results: ``{"speaker": "Ann"}``, ``{"type": "Person"}``; see `kg_memory.models.filters`.
         *     *recipe* chooses how to search and rank: a name, a dict or a `kg_memory.retrieval.recipe.Recipe`.
         *     *explain* adds `SearchResults.explanations`: why each result has its rank, and what was left out.
         *
         *     Raises `InputError`, `DatabaseError` and `EmbeddingError`.
         */
        post: operations["search"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/context": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search a namespace for *question*, and return the results as text for a prompt: dated lines with sources.
         * @description The text is a `str` of at most *max_tokens* tokens, with the attributes `results` (all search results), `lines`,
         *     `left_out` (results that did not fit) and `tokens`. *limit* is the maximum number of results of each kind; None
         *     is as many as may fit. *template* is the format: ``plain``, ``zep``, ``xml``, ``json``, ``zeph``, or a
         *     `Template`. Lines from other namespaces than the first begin with the name: ``[team-red]``. The other parameters
         *     and the errors are those of `search`.
         */
        post: operations["context"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/profile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the current facts about the entity *name*, such as home and job, grouped by topic and sub-topic.
         * @description ``str(profile)`` is text for a prompt, which changes only when the entity's facts do. No model is called.
         *     *schema* has your own topics, as a dict or the path of a TOML or JSON file; *strict* leaves out facts that fit
         *     none of them. *max_tokens* limits the text; None is no limit. *prefer_topics* come first; *only_topics* leaves
         *     out all others. *max_subtopics* limits the sub-topics of a topic: the smallest are joined as ``other``.
         *     *max_slot_tokens* limits each line. *as_of* and *believed_at* select another time, as in `search`. See
         *     `docs/profile.md`. Raises `InputError`.
         */
        get: operations["profile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the numbers of episodes, entities, facts, communities and waiting reviews in the namespace.
         * @description Call the memory method with the query or body of the request, and return its result as JSON.
         */
        get: operations["stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop the namespace from accepting new episodes, in all processes, until `unpause`.
         * @description Returns False if it was paused before. While it is paused, methods that add episodes raise `MemoryPaused`, and
         *     LangGraph nodes and middleware save nothing. Searching, reviewing, forgetting and `episodes.resume` still work.
         */
        post: operations["pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/unpause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a `pause`: accept new episodes again. Returns False if the namespace was not paused.
         * @description Call the memory method with the query or body of the request, and return its result as JSON.
         */
        post: operations["unpause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/episodes/{episode}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the episode (a stored message, text or record) with the id *episode*, or None.
         * @description Call the memory method with the query or body of the request, and return its result as JSON.
         */
        get: operations["episodes.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/episodes/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extract facts again from messages and texts for which that failed, earliest first; return the results.
         * @description *episodes* are ids; None: all that failed. *skipped* includes skipped messages, such as greetings, but suspected
         *     prompt injections only by id. ``read=False`` only marks them as unread, for `resume` (not with *skipped*).
         *     Raises `InputError`.
         */
        post: operations["episodes.retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/episodes/summarise": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Summarise a conversation with one model call; store the summary as an episode of it, and return the summary.
         * @description *thread* is the id of the conversation. The new summary updates the previous one. It has intent, files,
         *     decisions, open questions and next steps. If fewer than *least* messages are new, the previous summary is
         *     returned, or None. The summary is deleted when a message of the conversation is forgotten. Raises `InputError`
         *     if the memory has no model; `ModelError`, `DatabaseError` and `MemoryPaused`.
         */
        post: operations["episodes.summarise"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/episodes/deepen": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extract facts again from messages and texts read less thoroughly than by the plan *to*; return the results.
         * @description *to* is ``"standard"``, ``"thorough"`` or None (this memory's plan, at least ``"standard"``). No fact is
         *     removed. *skipped* includes skipped messages, such as greetings, but not suspected prompt injections. *limit* is
         *     the most messages; None: all. *dry_run* only lists them. Raises `InputError` for an unknown plan or without a
         *     model.
         */
        post: operations["episodes.deepen"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return a page of facts, latest first, including past facts; a fact that held twice is listed twice.
         * @description *namespace* may be a list of several: then one list of all their facts, each with its `namespace`.
         *     *where* is a filter, such as ``{"predicate": "LIVES_IN"}``; see `kg_memory.models.filters`. *about* is an
         *     entity, by name or id. For the times see `Facts`. *unreviewed* includes facts that wait for review. *after* is
         *     the `next` of the previous page. Raises `InputError`.
         */
        get: operations["facts.list"];
        put?: never;
        /**
         * Declare one fact that your application knows, without asking a model, and return what changed.
         * @description ``memory.facts.add("Ann", "works at", "Acme", valid_at="2024-05")``. *object* is a name, a list of names for a
         *     fact about more than two entities, or None for a fact about *subject* alone. *valid_at* and *invalid_at* are
         *     when the fact began and ended, as exactly as it is known: a datetime, a date, a year, or text such as
         *     ``"2024-05"``; None is unknown.
         *     *sentence* is the fact in words; None makes one from the names. *source* and *source_id* are the system it comes
         *     from and its id there; the same id is stored once. *confidence* and *trust*, from 0 to 1, are how sure the fact
         *     is and how far its source is believed. *at* is when it is stated; None is now. After *expires_at* the next
         *     `privacy.evict` deletes it. *labels* are for filters. *rests_on* has the ids of premises (reasons or
         *     conditions): when one of them ends, this fact is doubtful.
         *
         *     The fact ends or corrects existing facts by the same rules as a message; if it exists already, it gets another
         *     source. ``privacy.forget(episode=result.episode)`` takes it back. See `docs/declared.md`. Raises `InputError`,
         *     `MemoryPaused`, `DatabaseError` and `EmbeddingError`.
         */
        post: operations["facts.add"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Declare many facts in order, without asking a model, and return one result for each row.
         * @description A row is a dict with the arguments of `add`, or a tuple ``(subject, predicate, object)``. *mapping* says which
         *     facts each row states if rows are JSON records; see `docs/declared.md`. *progress* is called after each row.
         *     Raises `InputError` for invalid rows, before any row is saved.
         */
        post: operations["facts.add_many"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/stale": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return facts that may be outdated although nothing contradicts them, the most useful to ask about first.
         * @description Each state has a freshness: 1 when it is stated, 0.5 after its half-life, such as 60 days for a mood, four years
         *     for a job and five for a home; a birthplace stays fresh. If at least five facts of the same predicate have ended
         *     in the namespace, the half-life is computed from them. A plan is stale after its day. *about*: an entity, by
         *     name or id. *at*: the time for which to judge (None: *believed_at* or now). *below*: the highest freshness, from
         *     0 to 1. An answer that is added as a message refreshes the fact or ends it. Raises `InputError`.
         */
        get: operations["facts.stale"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/{fact}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the stored fact with the id *fact*, also if it has ended or waits for review; None if there is none.
         * @description A fact that was true several times is returned with its latest period. *believed_at*: return the fact as the
         *     memory believed it at that time.
         */
        get: operations["facts.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/{fact}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the evidence for a fact (an id): sources, relations to other facts, successors, dependent facts.
         * @description Each list has at most 1,000 items. *believed_at*: return what the memory believed at that time.
         */
        get: operations["facts.explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/{fact}/sources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the sources of *fact* (an id): each episode that states it, with its quote, earliest first.
         * @description *limit*: the maximum number. *skip*: how many of the first to leave out. *believed_at*: leave out sources saved
         *     after this time.
         */
        get: operations["facts.sources"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/{fact}/evolution": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the facts that *fact* (an id) replaced, and those that replaced it, earliest first, at most 64.
         * @description Call the memory method with the query or body of the request, and return its result as JSON.
         */
        get: operations["facts.evolution"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/{fact}/consequences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the facts that depend on *fact* (an id), directly or through other facts, nearest first.
         * @description Each has the path from *fact* and, if it is doubtful at *as_of* (None is now), since when and why.
         */
        get: operations["facts.consequences"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/{fact}/retract": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Withdraw the fact with the id *fact*, so that the memory no longer believes it; return the decision.
         * @description ``reviews.undo(review.id)`` reverses it. Facts that the withdrawn fact had ended hold again. It is believed
         *     again when a later message states it. *by*: the author of the decision, stored with *reason*. Raises
         *     `InputError`.
         */
        post: operations["facts.retract"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/facts/{fact}/replace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace the fact with the id *fact* by a new one; return the decision, which `reviews.undo` reverses.
         * @description Give either *with_text*, a text that states the new fact, or *episode*, the id of a stored text that does. The
         *     old fact ends where the new one begins; if the new one does not begin later, the old fact is not believed at
         *     all. *by* is the author of the text and of the decision. Raises the errors of `GraphMemory.add`, and
         *     `InputError` if the text states no other fact; the text is then deleted.
         */
        post: operations["facts.replace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the changes of the memory's beliefs from *since* until before *until* (None is now), earliest first.
         * @description A fact was learned, ended, corrected, retracted or restored, or became doubtful or certain again. The times are
         *     those at which the memory learned of the change.
         */
        get: operations["facts.changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the entities of a namespace, last seen first; with *like* only matching ones, best match first.
         * @description *like*: a text to find in names and summaries; its last word may be incomplete: ``"rus"`` finds Rust. *limit*:
         *     the maximum number of entities. *skip*: how many of the first to leave out.
         */
        get: operations["entities.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return an overview of the entity *name*: latest facts, neighbours, latest messages about it, and communities.
         * @description *name* is a name, an alias or an id. *limit* is the maximum number of facts, of neighbours and of messages.
         *     *as_of*, *during* and *believed_at* choose another time than the present; see `Facts`. Returns None if no entity
         *     has that name.
         */
        get: operations["entities.card"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{name}/facts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the facts about the entity *name*, latest first; a fact that held twice is listed for each period.
         * @description *name* is a name, an alias or an id. Past facts are included. *as_of* selects facts that held at that time,
         *     *during* facts that held at some time in that period. *unreviewed* includes facts that wait for review.
         */
        get: operations["facts.about"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{name}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the periods in which each fact about the entity *name* held, newest first, with their sources.
         * @description ``history("Ann", "lives in")`` lists each home of Ann with its dates. *predicate*: one relation in any wording,
         *     such as ``"lives in"`` or ``RESIDES_IN``; None means all. *believed_at*: return what the memory believed at that
         *     time.
         */
        get: operations["facts.history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{name}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return a timeline of the entity *name*: when each fact about it began, ended or was stated, earliest first.
         * @description *limit*: the maximum number of periods of facts. *believed_at*: use the facts that the memory believed at that
         *     time.
         */
        get: operations["facts.timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{name}/around": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the facts around the entity *name*, and the entities that they connect, the nearest first.
         * @description *name*: a name, an alias or an id. *steps*: the maximum distance, 1 to 6 facts. *limit*: the maximum number of
         *     facts. *as_of*, *during* and *believed_at*: another time than now, as in `Facts`. Raises `InputError`.
         */
        get: operations["entities.around"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{name}/path": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the shortest chain of facts that connects the entity *name* to the entity *target*, in order.
         * @description ``path("Ann", "Oslo")`` may return "Ann works at Acme" and "Acme is in Oslo". Both entities are given by a name,
         *     an alias or an id. *steps* is the maximum number of facts (1 to 6); if more are needed, the list is empty. Only
         *     facts that hold now are used; *as_of*, *during* and *believed_at* choose another time, see `Facts`. Raises
         *     `InputError`.
         */
        get: operations["entities.path"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{name}/similar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return stored entities with names that mean nearly the same as *name*, best first.
         * @description Only entities that were added while `Settings.note_linking` was on are found. `Entity.score` is the similarity
         *     of the names, up to 1. *limit*: the maximum number of entities.
         */
        get: operations["entities.similar"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{into}/merge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Merge the entities *others* into *into*, because all are the same person or thing; return the decisions.
         * @description Entities are given by a name, or by an id if several have that name. Their facts, mentions and names move to
         *     *into*, and later episodes use the merged entity. *by* (who decides) and *reason* are stored.
         *     ``entities.undo(decision.id)`` reverses a merge. Raises `InputError`.
         */
        post: operations["entities.merge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/entities/{entity}/split": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Split an entity that mixes two people or things: move some of its facts to a new entity; return the decision.
         * @description - *entity*: a name or an id. *name* and *type*: those of the new entity.
         *     - *facts*: ids of the facts to move. *episodes*: ids of messages whose facts about the entity are moved.
         *     - *by* (who decides) and *reason* are stored.
         *
         *     A fact that other messages state too stays with both entities. The two entities are not merged automatically
         *     again. `undo` reverses the split. Raises `InputError`.
         */
        post: operations["entities.split"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the decisions to merge, split or keep apart entities, latest first, including undone ones.
         * @description *limit*: the maximum number of decisions. *skip*: how many of the latest to leave out.
         */
        get: operations["entities.decisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/identities/waiting": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the open questions whether a new entity is the same person or thing as an existing one.
         * @description Until a question is decided, the two entities stay separate. `Entities.decisions` lists the decided ones.
         *     *limit* is the maximum number; *skip* is how many to leave out before.
         */
        get: operations["reviews.identities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/identities/{decision}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo a merge, a split, or the decision whether two entities are the same; return the undone decision.
         * @description *decision*: its id. *by* (who decides) and *reason* are stored. Facts that were added since stay where they are.
         *     Raises `InputError` if the decision is undone already.
         */
        post: operations["entities.undo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/identities/{doubt}/decide": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decide whether two entities are the same: ``"accept"`` merges them, ``"reject"`` keeps them apart.
         * @description *doubt*: the id of the question, from `identities`. *by* (who decides) and *reason* are stored. Returns the
         *     decision; `Entities.undo` reverses it. Raises `InputError`.
         */
        post: operations["reviews.decide_identity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/communities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the communities (groups of entities) with their members' names, highest level first, then largest.
         * @description A community of level 0 consists of entities, one of level 1 consists of communities of level 0, and so on.
         *     *level* selects one level; None is all levels. `refresh` detects communities; entities that were added later
         *     join an existing one.
         */
        get: operations["communities.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/communities/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return one community (a group of entities) with its latest facts, its parent and its children, or None.
         * @description *name* is its id or the beginning of its name. *limit* is the maximum number of facts.
         */
        get: operations["communities.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/communities/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Group the entities into communities by their current facts, and let the model summarise changed communities.
         * @description Most existing communities stay as they are; *full* detects and summarises all from scratch. Searches use the old
         *     communities until the refresh is complete. If the model cannot be reached, the old ones remain, and the next
         *     refresh asks only for the missing summaries. Raises `ModelError` and `DatabaseError`.
         */
        post: operations["communities.refresh"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/reviews": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the verdicts (how a new fact relates to an existing one) that wait for a person, earliest first.
         * @description Until a decision, both facts are believed and marked as disputed; with `Settings.disputes` set to ``withhold``,
         *     the later fact is not believed. *decided*: return the verdicts that people have decided instead, latest first.
         */
        get: operations["reviews.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/conflicts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the pairs of facts that cannot both be true, as reviews, earliest first.
         * @description Some were decided automatically, others wait for a person. *limit* is the maximum number; *skip* is how many to
         *     leave out before.
         */
        get: operations["reviews.conflicts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/verdicts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return all verdicts (how two facts relate) about the fact with the id *fact*, latest first; None is any fact.
         * @description If `decided_by` is ``"auto"``, the verdict took effect automatically; people can still decide it. Raises
         *     `InputError` if the fact is not stored.
         */
        get: operations["reviews.verdicts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/reviews/{review}/decide": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decide a verdict (how a new, pending fact relates to an existing one), and return it in its new state.
         * @description *review*: its id. *choice*: ``"accept"`` (the verdict takes effect), ``"reject"`` (the pending fact is not
         *     believed) or ``"edit"`` (give the right *verdict*, or the right dates). ``complements``, ``temporary`` and
         *     ``unrelated`` mean that both facts hold. *valid_at* and *invalid_at*: start and end of the pending fact, such as
         *     ``"2019"``; ``invalid_at="open"`` says that it has not ended. *seen*: the effect (`Review.ruling`) that was
         *     shown to the person; if it has changed since, `InputError` is raised. `undo` reverses the decision.
         */
        post: operations["reviews.decide"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/reviews/{review}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo the last decision about a verdict (how two facts relate), and return the verdict as it was before.
         * @description *review* is its id. *by* and *reason* (who undoes it, and why) are stored.
         */
        post: operations["reviews.undo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/predicates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the predicates that the namespace learned, and those declared or corrected in it, sorted by name.
         * @description The built-in predicates are not included. *limit*: the maximum number. *skip*: how many of the first to leave
         *     out.
         */
        get: operations["predicates.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/predicates/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Set the canonical name of a predicate (a relation), or whether it is single-valued; return the result.
         * @description Example::
         *
         *         memory.predicates.update("RESIDES_IN", canonical="LIVES_IN")
         *         memory.predicates.update("PREFERS", single_valued=True)
         *
         *     A single-valued predicate has one object at a time. None leaves a value unchanged, and existing facts stay
         *     unchanged. Raises `InputError` for an invalid name, or if neither value is given.
         */
        patch: operations["predicates.update"];
        trace?: never;
    };
    "/v1/namespaces/{namespace}/reports/digest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return a digest of a period: its changes and failures, and the questions that a person must decide.
         * @description The period is from *since* up to *until* (default: now), by the time of recording. *limit*: the most items of
         *     each kind.
         */
        get: operations["reports.digest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/reports/identity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return a portrait of a person: the facts about them, and the changes of these facts since the time *since*.
         * @description *about* is the name of an entity; by default it is the person who sent the most messages. *limit* is the maximum
         *     number of facts of each kind. Errors: `InputError` if *about* is left out and no person has sent messages.
         */
        get: operations["reports.identity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/reports/handoff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return notes for the next session or agent: plans, decisions, open reviews and the last messages.
         * @description With *thread*, facts and messages are only from that conversation. *limit*: the most items of each kind.
         *     Messages that look like prompt injections are left out.
         */
        get: operations["reports.handoff"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the model calls, tokens and money of each of the last *days* days (UTC), today first.
         * @description Days without model calls are left out. `DailyUsage.money` is None if the settings have no prices.
         */
        get: operations["usage.spent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/usage/estimate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Estimate the model calls, tokens, money and time that `GraphMemory.add_many` would need for *episodes*.
         * @description No model is called, and nothing is stored. In a test with 150 messages of one conversation, the estimated calls
         *     and input tokens were within a tenth of the real ones. For the first few messages of a new memory, the estimate
         *     is up to twice too high. Raises `InputError` for an episode that could not be stored.
         */
        post: operations["usage.estimate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/evict": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove old or excess content to bound the size of the memory, and return what was removed.
         * @description *expired_days* removes facts that ended, and beliefs (periods of facts) that were corrected, at least this many
         *     days ago; answers about any later time stay the same.
         *     *orphans* removes entities last seen at least *expired_days* ago (90 if None) that have no facts, or only facts
         *     that ended that long ago, which are removed with them.
         *     *max_entities* is how many entities remain: those with the fewest current facts are removed first, together with
         *     their facts; of entities with equally many, the longest unmentioned.
         *     *expired_episodes* deletes episodes past their `expires_at`, as `forget` does. Without any of these four
         *     arguments, only this is done.
         *
         *     Evicted facts and entities lose their words and vectors, so searches do not find them until they are stated or
         *     mentioned again; `facts.about` and `facts.history` still return them. Other episodes stay.
         *     *dry_run* changes nothing, and returns what would be removed. *progress* is called with the result so far. The
         *     call may be interrupted and repeated. See `docs/eviction.md`. Raises `InputError` and `DatabaseError`.
         */
        post: operations["privacy.evict"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespace}/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Return the audit log of this server, latest first: what was forgotten, when and by whom, without the text.
         * @description *namespace* selects one namespace; if left out, all are listed. *limit* is the maximum number of entries; *skip*
         *     is how many of the latest to leave out.
         */
        get: operations["privacy.audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Namespaces
         * @description List the namespaces that hold data and that the key may access; *state*: only those awake or asleep.
         */
        get: operations["data.namespaces"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Describe Key
         * @description Return the id, name, scopes and namespaces of the key that this request sends.
         */
        get: operations["server.key"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check Health
         * @description Return ``{"status": "ok"}`` while the server runs. Needs no key.
         */
        get: operations["server.health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description The result of adding one episode (a message, text or record): its id, and what was stored.
         *
         *     - `facts`, `ended`, `pending`: sentences of facts that it states, that it ends, and that wait for a person's review.
         *     - `dropped`: extracted, but not stored. `unmapped`: facts of a mapping that the record lacks, with reasons.
         *     - `error`, `skipped`: why processing failed, or was not tried. `new`: False if it was added before.
         */
        AddResult: {
            episode: string;
            new: boolean;
            /** @default done */
            status: components["schemas"]["EpisodeStatus"];
            /** @default [] */
            entities: string[];
            /** @default [] */
            facts: string[];
            /** @default [] */
            ended: string[];
            /** @default [] */
            pending: string[];
            /** @default [] */
            dropped: components["schemas"]["Dropped"][];
            error: string | null;
            skipped: string | null;
            /** @default [] */
            unmapped: string[];
            /** @default [] */
            steps: components["schemas"]["StepUsage"][];
        };
        /** @description The results of several episodes, in the order of the request. */
        AddedEpisodes: {
            episodes: components["schemas"]["AddResult"][];
        };
        /**
         * @description Whether the memory can answer a question: ``yes``, ``unlikely`` or ``no``; true in a condition if ``yes``.
         *
         *     `reason` says why not, such as "nothing here is about Lily". If `abstains`, the relevance is below
         *     `Settings.abstain_below`, and prompt texts only say that the memory does not know.
         */
        Answerable: {
            /** @enum {string} */
            value: "yes" | "unlikely" | "no";
            /** @default  */
            reason: string;
            /** @default false */
            abstains: boolean;
        };
        /**
         * @description An API key without its secret: it has `scopes` in the namespaces that match one of the patterns in `namespaces`.
         *
         *     ``*`` in a pattern matches any characters: ``"support/*"``. `reads` are patterns of further namespaces, in which it
         *     has no scope but ``read``. The scope ``admin`` includes all others. `revoked_at` is ``None`` while the key is valid.
         */
        ApiKey: {
            id: string;
            name: string;
            scopes: ("read" | "write" | "review" | "forget" | "admin")[];
            /**
             * @default [
             *       "*"
             *     ]
             */
            namespaces: string[];
            /** @default [] */
            reads: string[];
            /** Format: date-time */
            created_at: string;
            revoked_at: string | null;
        };
        /**
         * @description A question for a person, with its id and the shell commands that decide it.
         *
         *     `kind` is ``admission``, ``supersedes`` or ``conflicts`` for facts, or ``identity`` for two entities.
         */
        Arbitration: {
            id: string;
            kind: string;
            question: string;
            /** @default  */
            reason: string;
            confidence: number | null;
            /** @default [] */
            commands: string[];
        };
        /** @description The question that a message answers, with the id and the speaker of the message that asks it. */
        Asked: {
            episode: string;
            source_id: string | null;
            speaker: string | null;
            question: string;
        };
        /**
         * @description An entry of the audit log about a deletion: its kind, when and by whom, but no deleted text.
         *
         *     A deletion has two entries with the same `receipt`: one before it (`complete` is False) and one after it. `what`
         *     (the thing deleted, such as a person), `namespace` and `messages` are salted hashes. `residue`: the number of traces
         *     of deleted content that were found, which should be 0. `before`: the hash of the previous entry.
         */
        AuditEntry: {
            number: number;
            receipt: string;
            kind: string;
            what: string;
            namespace: string;
            /** @default [] */
            messages: string[];
            by: string;
            /** @default  */
            reason: string;
            /** Format: date-time */
            at: string;
            /** @default 0 */
            episodes: number;
            /** @default 0 */
            facts: number;
            /** @default 0 */
            entities: number;
            residue: number | null;
            /** @default 0 */
            searched: number;
            erased: boolean | null;
            /** @default true */
            complete: boolean;
            before: string;
            hash: string;
        };
        /**
         * @description A change, at the time `at`, of a fact that the memory believes.
         *
         *     ``learned``: a new fact. ``ended``: its end was learned. ``corrected``: new dates. ``retracted``: no longer
         *     believed; ``restored``: believed again. ``doubtful``: a fact on which it depends ended or was refuted; ``sure``: it
         *     is no longer doubtful. `before`, `after`: the fact as believed then. `cause`: the id of the message or decision;
         *     None for ``doubtful`` and ``sure``.
         */
        Change: {
            /** Format: date-time */
            at: string;
            /** @enum {string} */
            kind: "learned" | "ended" | "corrected" | "retracted" | "restored" | "doubtful" | "sure";
            before: components["schemas"]["Fact"] | null;
            after: components["schemas"]["Fact"] | null;
            cause: string | null;
        };
        CommunitiesRefreshRequest: {
            /**
             * @description Whether to find and summarise all communities again.
             * @default false
             */
            full?: boolean;
        };
        /**
         * @description A group of entities that share many facts, with a summary; from `level` 1 on, a group of smaller communities.
         *
         *     `members`: names of entities. `parts`: names of smaller communities. Searches leave both empty. `joined`: how many
         *     members were added since the summary was written.
         */
        Community: {
            id: string;
            name: string;
            /** @default  */
            summary: string;
            /** @default 0 */
            level: number;
            /** @default [] */
            members: string[];
            /** @default [] */
            parts: string[];
            /** @default 0 */
            joined: number;
            score: number | null;
            namespace: string | null;
        };
        /** @description An overview of a community (a group of entities): its latest facts or smaller groups, and the group around it. */
        CommunityCard: {
            community: components["schemas"]["Community"];
            /** @default [] */
            facts: components["schemas"]["Fact"][];
            /** @default [] */
            parts: components["schemas"]["Community"][];
            part_of: components["schemas"]["Community"] | null;
        };
        /**
         * @description The result of recomputing the communities (groups of entities): how many there are, changed, and were removed.
         *
         *     `drift`: the share of entities whose community changed, 0 to 1; None without earlier communities. `questions`: the
         *     number of model calls.
         */
        CommunityRefresh: {
            /** @default 0 */
            communities: number;
            /** @default 0 */
            levels: number;
            /** @default 0 */
            changed: number;
            /** @default 0 */
            unchanged: number;
            /** @default 0 */
            removed: number;
            drift: number | null;
            /** @default 0 */
            questions: number;
            /**
             * @default {
             *       "calls": 0,
             *       "input_tokens": 0,
             *       "output_tokens": 0,
             *       "cached_tokens": 0,
             *       "dropped": 0,
             *       "given_up": []
             *     }
             */
            usage: components["schemas"]["Usage"];
        };
        /** @description A `fact` derived from another fact in one or more steps; `path` has the facts of these steps, `fact` last. */
        Consequence: {
            fact: components["schemas"]["Fact"];
            path: components["schemas"]["Premise"][];
        };
        /**
         * @example {
         *       "max_tokens": 500,
         *       "question": "Where does Ann live?"
         *     }
         */
        ContextRequest: {
            /** @description A question or search words; times in it (`in 2023`) decide which facts come first. */
            question: string;
            /**
             * @description The longest context, in tokens.
             * @default 1500
             */
            max_tokens?: number;
            /** @description The most items to return. */
            limit?: number | null;
            /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
            as_of?: string | null;
            /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
            during?: string | null;
            /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
            believed_at?: string | null;
            /**
             * @description Whether to include facts that wait for review.
             * @default false
             */
            unreviewed?: boolean;
            /** @description The thread (conversation). */
            thread?: string | null;
            /** @description Names of entities near which to search. */
            center?: string[] | null;
            /** @description The person that `I` and `my` in the question mean. */
            asker?: string | null;
            /** @description A filter; in a query it is JSON. */
            where?: {
                [key: string]: unknown;
            } | null;
            /** @description How to search and rank: the name of a recipe, or a recipe. */
            recipe?: string | {
                [key: string]: unknown;
            } | null;
            /** @description The format of the context: plain, zep, xml, json or zeph. */
            template?: string | null;
            /**
             * @description Whether to explain the rank of each result.
             * @default false
             */
            explain?: boolean;
            /** @description Further namespaces to read; the key must allow each. */
            recall_from?: string[] | null;
        };
        /** @description A context as JSON: `text` for a prompt, the `lines` in it, candidates `left_out`, and the search `results`. */
        ContextView: {
            text: string;
            tokens: number;
            /** @default [] */
            lines: components["schemas"]["Line"][];
            /** @default [] */
            left_out: components["schemas"]["Explanation"][];
            results: components["schemas"]["SearchResults"];
        };
        /**
         * @description Numbers of changes in a period.
         *
         *     `episodes`: messages saved. `recorded`: beliefs saved; a belief is a period in which a fact counts as true.
         *     `closed`: beliefs withdrawn or replaced.
         */
        Counts: {
            /** @default 0 */
            episodes: number;
            /** @default 0 */
            recorded: number;
            /** @default 0 */
            closed: number;
        };
        /** @description The model usage of one namespace on one day (UTC). `money` is its cost, None if the settings have no prices. */
        DailyUsage: {
            /** @default 0 */
            calls: number;
            /** @default 0 */
            input_tokens: number;
            /** @default 0 */
            output_tokens: number;
            /** @default 0 */
            cached_tokens: number;
            /** @default 0 */
            dropped: number;
            /** @default [] */
            given_up: string[];
            /** Format: date */
            day: string;
            money: number | null;
        };
        /** @description A person's decision about a verdict (how two facts relate), such as to accept it. It stays stored if undone. */
        Decision: {
            id: string;
            /** @enum {string} */
            decision: "accept" | "reject" | "edit" | "undo";
            by: string;
            /** Format: date-time */
            at: string;
            /** @default  */
            reason: string;
            /** @enum {string} */
            ruling: "supersedes" | "conflicts" | "waiting" | "refused" | "both" | "fulfilled" | "dropped" | "replaced";
        };
        /**
         * @description A report on the changes from `since` to `until` (exclusive), and on the questions that a person has to decide.
         *
         *     - `pending`: open questions. `conflicts`: contradictions that were settled in the period.
         *     - `changes`: the latest changes of facts. `merges`: entities that were merged or split.
         *     - `failed`: messages that could not be read. `expiring`: messages that expire soon.
         *     - `fading`: facts that nobody has used for long. `counts_before`: the counts of the previous period.
         */
        Digest: {
            /** Format: date-time */
            believed_at: string;
            /** Format: date-time */
            since: string;
            /** Format: date-time */
            until: string;
            counts: components["schemas"]["Counts"];
            counts_before: components["schemas"]["Counts"];
            /** @default [] */
            pending: components["schemas"]["Arbitration"][];
            /** @default [] */
            conflicts: components["schemas"]["Arbitration"][];
            /** @default [] */
            changes: components["schemas"]["Change"][];
            /** @default [] */
            merges: components["schemas"]["IdentityDecision"][];
            /** @default [] */
            failed: components["schemas"]["Episode"][];
            /** @default [] */
            expiring: components["schemas"]["Episode"][];
            /** @default [] */
            fading: components["schemas"]["Fading"][];
        };
        /**
         * @description Something in a message that was not stored, or not read: its `text`, and the `reason`.
         *
         *     `kind`: "entity" or "fact" (extracted, but not stored), or "part" (of a long text: the model refused to read it).
         */
        Dropped: {
            /** @enum {string} */
            kind: "entity" | "fact" | "part";
            text: string;
            reason: string;
        };
        /** @description An edge in Cytoscape's format. */
        Edge: {
            /**
             * @default edges
             * @constant
             */
            group: "edges";
            data: components["schemas"]["EdgeData"];
        };
        /** @description A fact as an edge. A fact with several objects has an edge to each of them, all with its id in `fact`. */
        EdgeData: {
            id: string;
            source: string;
            target: string;
            label: string;
            fact: string;
            kind: string;
            sentence: string;
            valid_at: string | null;
            invalid_at: string | null;
            known_from: string | null;
            /** Format: date-time */
            created_at: string;
            expired_at: string | null;
            confidence: number;
            /** @default  */
            mark: string;
        };
        /** @description The nodes and edges of a graph. */
        Elements: {
            nodes: components["schemas"]["Node"][];
            edges: components["schemas"]["Edge"][];
        };
        /**
         * @example {
         *       "others": [
         *         "Annie"
         *       ],
         *       "reason": "the same person"
         *     }
         */
        EntitiesMergeRequest: {
            /** @description The names or ids of the entities to merge into it. */
            others: string[];
            /** @description The person who decides; the name of the key if left out. */
            by?: string | null;
            /**
             * @description The reason, which is stored.
             * @default
             */
            reason?: string;
        };
        /**
         * @example {
         *       "episodes": [
         *         "0b1f6d0e-6d0c-5d5e-9d5c-2f1f0c9d1b11"
         *       ],
         *       "name": "Ann Smith"
         *     }
         */
        EntitiesSplitRequest: {
            /**
             * @description The ids of facts.
             * @default []
             */
            facts?: string[];
            /**
             * @description The ids of episodes.
             * @default []
             */
            episodes?: string[] | null;
            /** @description The name of the new entity. */
            name?: string | null;
            /** @description The type of an entity. */
            type?: string | null;
            /** @description The person who decides; the name of the key if left out. */
            by?: string | null;
            /**
             * @description The reason, which is stored.
             * @default
             */
            reason?: string;
        };
        EntitiesUndoRequest: {
            /** @description The person who decides; the name of the key if left out. */
            by?: string | null;
            /**
             * @description The reason, which is stored.
             * @default
             */
            reason?: string;
        };
        /** @description A person, place, organisation, thing or idea that episodes mention. */
        Entity: {
            id: string;
            name: string;
            /** @default Entity */
            type: string;
            /** @default [] */
            aliases: string[];
            /** @default  */
            summary: string;
            first_seen: string | null;
            last_seen: string | null;
            score: number | null;
            namespace: string | null;
        };
        /** @description An overview of an entity: its latest facts, closest neighbours, latest messages about it, and communities. */
        EntityCard: {
            entity: components["schemas"]["Entity"];
            /** @default [] */
            facts: components["schemas"]["Fact"][];
            /** @default [] */
            neighbours: components["schemas"]["Neighbour"][];
            /** @default [] */
            episodes: components["schemas"]["Episode"][];
            /** @default [] */
            communities: components["schemas"]["Community"][];
        };
        /**
         * @description A stored message, text or record; its content never changes.
         *
         *     `at`: when it was said. `created_at`: when it was saved. `trust`: 0 to 1, how far its source is believed. `reason`:
         *     why it waits, failed or was skipped. `step`: where processing failed. `attempts`: how often processing began.
         *     `plan`: the reading plan. `flags`: kinds of prompt injection found. `expires_at`: when searches stop returning it.
         *     `score`: set by searches, as are `remarks` (facts in it that have changed). `asked`: in a context, the
         *     message before it, if that is the question which it answers.
         */
        Episode: {
            id: string;
            /** @default message */
            kind: components["schemas"]["EpisodeKind"];
            content: string;
            speaker: string | null;
            source: string | null;
            source_id: string | null;
            thread: string | null;
            /** Format: date-time */
            at: string;
            /** Format: date-time */
            created_at: string;
            /** @default saved */
            status: components["schemas"]["EpisodeStatus"];
            reason: string | null;
            step: string | null;
            /** @default 0 */
            attempts: number;
            plan: string | null;
            /** @default [] */
            flags: string[];
            /** @default 1 */
            trust: number;
            expires_at: string | null;
            labels: {
                [key: string]: string | number | boolean | (string | number | boolean)[];
            };
            /** @default [] */
            remarks: components["schemas"]["Remark"][];
            asked: components["schemas"]["Asked"] | null;
            score: number | null;
            namespace: string | null;
        };
        /**
         * @description A message, text or JSON record to remember.
         * @example {
         *       "at": "2024-05-14T09:30:00Z",
         *       "content": "I moved to Oslo last week!",
         *       "speaker": "Ann",
         *       "thread": "monday"
         *     }
         */
        EpisodeBody: {
            content: string;
            /** @default message */
            kind?: components["schemas"]["EpisodeKind"];
            speaker?: string | null;
            at?: string | null;
            thread?: string | null;
            source?: string | null;
            source_id?: string | null;
            /** @default 1 */
            trust?: number;
            expires_at?: string | null;
            labels?: {
                [key: string]: string | number | boolean | (string | number | boolean)[];
            };
        };
        /**
         * @description A message, text or JSON record to add to a memory.
         *
         *     `at`: when it was said; naive is UTC, None is now. `source_id`: its id in the system `source`; each id is stored
         *     once. `trust`: 0 to 1, how far the source is believed. `expires_at`: None means `Settings.default_ttl` after saving,
         *     or never. `labels`: values for filters, such as ``{"agent": "support", "tags": ["vip"]}``.
         */
        EpisodeInput: {
            content: string;
            /** @default message */
            kind?: components["schemas"]["EpisodeKind"];
            speaker?: string | null;
            at?: string | null;
            thread?: string | null;
            source?: string | null;
            source_id?: string | null;
            /** @default 1 */
            trust?: number;
            expires_at?: string | null;
            labels?: {
                [key: string]: string | number | boolean | (string | number | boolean)[];
            };
        };
        /**
         * @description The kind of an episode (a stored message, text or record).
         *
         *     `FACT`: facts that an application declares. `BLOCK`: an agent's text in its prompt, not searched or read for facts.
         * @enum {string}
         */
        EpisodeKind: "message" | "text" | "json" | "fact" | "block";
        /**
         * @description The processing status of an episode (a stored message or text). In each status, a search by words finds it.
         *
         *     `SAVED`: not processed yet. `WORKING`: being processed, or the process was killed. `WAITING`: to be processed later,
         *     see `Episode.reason`. `DONE`: processed. `SKIPPED`: not processed, on purpose. `FAILED`: processing failed.
         * @enum {string}
         */
        EpisodeStatus: "saved" | "waiting" | "working" | "done" | "failed" | "skipped";
        /** @description Several episodes, in the order in which they were said. */
        EpisodesBody: {
            episodes: components["schemas"]["EpisodeBody"][];
        };
        EpisodesDeepenRequest: {
            /** @description The reading plan to use. */
            to?: string | null;
            /** @description The most items to return. */
            limit?: number | null;
            /**
             * @description Whether to read skipped episodes too.
             * @default false
             */
            skipped?: boolean;
            /**
             * @description Whether to change nothing and only return what would be done.
             * @default false
             */
            dry_run?: boolean;
        };
        EpisodesRetryRequest: {
            /** @description The ids of episodes. */
            episodes?: string[] | null;
            /**
             * @description Whether to read skipped episodes too.
             * @default false
             */
            skipped?: boolean;
        };
        /**
         * @example {
         *       "thread": "t-1"
         *     }
         */
        EpisodesSummariseRequest: {
            /** @description The thread (conversation). */
            thread: string;
            /**
             * @description The number of new messages below which nothing is done.
             * @default 4
             */
            least?: number;
        };
        /**
         * @description The estimated cost of processing `episodes` episodes (messages or texts).
         *
         *     `to_read` of them cost something; `finished` are done, `skipped` would be skipped. `seconds`: the shortest time
         *     (model calls in parallel) and the longest. `past`: the stored episodes used for the estimate; below 20, typical
         *     values are used.
         */
        Estimate: {
            episodes: number;
            to_read: number;
            finished: number;
            skipped: number;
            calls: components["schemas"]["Range"];
            input_tokens: components["schemas"]["Range"];
            output_tokens: components["schemas"]["Range"];
            money: components["schemas"]["Range"] | null;
            seconds: [
                number,
                number
            ] | null;
            /** @default 0 */
            past: number;
        };
        /**
         * @description The outdated data that `evict` removed, or would remove in a dry run.
         *
         *     - `facts`, `entities`: ids that searches no longer find. They stay stored, except entities without facts.
         *     - `episodes`: ids of deleted messages, which had expired. `texts`: the removed texts, by id.
         *     - `beliefs`: the number of deleted periods of facts that the memory considered true before they were corrected.
         */
        EvictionResult: {
            /** @default 0 */
            beliefs: number;
            /** @default [] */
            facts: string[];
            /** @default [] */
            entities: string[];
            /** @default [] */
            episodes: string[];
            /** @default false */
            dry_run: boolean;
            /** Format: date-time */
            at: string;
            texts: {
                [key: string]: string;
            };
        };
        /**
         * @description Why a search result has its rank, or why it was left out.
         *
         *     `text` is its line in the prompt text. `rank` is its place among the results of its kind, from 1. `left_out` is why
         *     it was left out, or None. `hits` are the searches that found it. `scores` are its scores after each ranking step:
         *     ``(("fused", 0.9), ("recency", 0.8))``.
         */
        Explanation: {
            /** @enum {string} */
            kind: "facts" | "entities" | "communities" | "episodes";
            id: string;
            /** @default  */
            text: string;
            rank: number | null;
            /** @default [] */
            hits: components["schemas"]["Hit"][];
            /** @default [] */
            scores: [
                string,
                number
            ][];
            left_out: string | null;
        };
        /**
         * @description A fact in one period, such as "Ann lives in Oslo" since 2023: when it is true, and when the memory believed it.
         *
         *     `valid_at` and `invalid_at` are when it begins and ceases to be true; `created_at` and `expired_at` when the memory
         *     began and ceased to believe it. Ends are exclusive, and None is open. `precision` and `end_precision` say how
         *     exactly the first two are known. Without a known start, `known_from` is when it is first known to be true. `objects`
         *     has several names if it is about more than two entities. `predicate` is canonical ("WORKS_AT"), `wording` as
         *     extracted. `edge_type` is semantic, causal, temporal, hierarchical or co_occurrence. `trust` is that of its most
         *     trusted message, `voices` the number of independent sources. `support` (0 to 1; None: unknown) is how well its best
         *     quote supports it, `confirmed` whether that is enough. If not `reviewed`, it waits for a person and is not believed
         *     yet. Ids of facts: `supersedes` (ended by this one), `superseded_by`, `disputed_by` (a person must decide).
         *
         *     A fact is doubtful if a fact from which it was derived has ended or was found wrong, and it was not stated since:
         *     `doubtful_since` is that time, and `doubtful_because` the path to that fact, the last. `absent`: it ended, and
         *     nothing is known to have replaced it. `outcome` is what became of a plan; then the plan holds from when it was
         *     stated until that. Without an outcome, `valid_at` is the time for which it is planned.
         */
        Fact: {
            id: string;
            /**
             * @default state
             * @enum {string}
             */
            kind: "state" | "event" | "plan";
            outcome: ("fulfilled" | "dropped" | "replaced") | null;
            subject: string;
            predicate: string;
            objects: string[];
            sentence: string;
            wording: string | null;
            /** @default semantic */
            edge_type: string;
            valid_at: string | null;
            invalid_at: string | null;
            /**
             * @default instant
             * @enum {string}
             */
            precision: "instant" | "day" | "weekend" | "week" | "month" | "season" | "year" | "about" | "by";
            /**
             * @default instant
             * @enum {string}
             */
            end_precision: "instant" | "day" | "weekend" | "week" | "month" | "season" | "year" | "about" | "by";
            known_from: string | null;
            /** Format: date-time */
            created_at: string;
            expired_at: string | null;
            /** @default 1 */
            confidence: number;
            /** @default 1 */
            trust: number;
            support: number | null;
            /** @default true */
            confirmed: boolean;
            /** @default 0 */
            voices: number;
            /** @default true */
            reviewed: boolean;
            /** @default [] */
            sources: components["schemas"]["Source"][];
            /** @default [] */
            supersedes: string[];
            /** @default [] */
            superseded_by: string[];
            /** @default [] */
            disputed_by: string[];
            doubtful_since: string | null;
            /**
             * @default instant
             * @enum {string}
             */
            doubtful_precision: "instant" | "day" | "weekend" | "week" | "month" | "season" | "year" | "about" | "by";
            /** @default [] */
            doubtful_because: components["schemas"]["Premise"][];
            /** @default false */
            absent: boolean;
            last_said: string | null;
            last_used: string | null;
            score: number | null;
            namespace: string | null;
        };
        /**
         * @description The evidence for a fact, its history, and the facts that depend on it (`consequences`).
         *
         *     `sources` are the quotes that state it. `verdicts` say how it relates to other facts. `evolution` has the facts that
         *     it replaced and that replaced it, in order. `fact` is None if it was not believed at the requested time.
         */
        FactExplanation: {
            fact: components["schemas"]["Fact"] | null;
            /** @default [] */
            sources: components["schemas"]["Source"][];
            /** @default [] */
            verdicts: components["schemas"]["Review"][];
            /** @default [] */
            evolution: components["schemas"]["Fact"][];
            /** @default [] */
            consequences: components["schemas"]["Consequence"][];
        };
        /**
         * @example {
         *       "rows": [
         *         {
         *           "object": "Acme",
         *           "predicate": "WORKS_AT",
         *           "source_id": "crm/4711",
         *           "subject": "Ann",
         *           "valid_at": "2024-05"
         *         }
         *       ]
         *     }
         */
        FactsAddManyRequest: {
            /** @description Facts, each with the fields of `POST /facts`. */
            rows: {
                [key: string]: unknown;
            }[];
        };
        /**
         * @example {
         *       "object": "Acme",
         *       "predicate": "WORKS_AT",
         *       "source_id": "crm/4711",
         *       "subject": "Ann",
         *       "valid_at": "2024-05"
         *     }
         */
        FactsAddRequest: {
            /** @description The name of an entity. */
            subject: string;
            /** @description A predicate in any wording. */
            predicate: string;
            /** @description A name, several, or none for a fact about the subject alone. */
            object?: string | string[] | null;
            /** @description When it became true, as exactly as known (`2024-05`). */
            valid_at?: string | null;
            /** @description When it stopped being true, as exactly as known (`2024-05`). */
            invalid_at?: string | null;
            /** @description The fact as a sentence. */
            sentence?: string | null;
            /** @description The source, such as `crm`. */
            source?: string | null;
            /** @description The id within the source; a second request with the same id stores nothing new. */
            source_id?: string | null;
            /**
             * @description How certain it is, from 0 to 1.
             * @default 1
             */
            confidence?: number;
            /**
             * @description How far the source is trusted, from 0 to 1.
             * @default 1
             */
            trust?: number;
            /** @description When it was said; now if left out. */
            at?: string | null;
            /** @description When it may be deleted; never if left out. */
            expires_at?: string | null;
            /** @description Labels, for filters. */
            labels?: {
                [key: string]: unknown;
            } | null;
            /** @description The type of the subject. */
            subject_type?: string | null;
            /** @description The type of the objects. */
            object_type?: string | null;
            /** @description The ids of premises: facts without which it is doubtful. */
            rests_on?: string[] | null;
        };
        /**
         * @example {
         *       "with_text": "Ann lives in Bergen."
         *     }
         */
        FactsReplaceRequest: {
            /** @description A message that states the new fact; or give the `episode` that states it. */
            with_text?: string | null;
            /** @description The id of an episode. */
            episode?: string | null;
            /** @description The person who decides; the name of the key if left out. */
            by?: string | null;
            /**
             * @description The reason, which is stored.
             * @default
             */
            reason?: string;
        };
        /**
         * @example {
         *       "reason": "she says it is not so"
         *     }
         */
        FactsRetractRequest: {
            /** @description The person who decides; the name of the key if left out. */
            by?: string | null;
            /**
             * @description The reason, which is stored.
             * @default
             */
            reason?: string;
        };
        /** @description A fact that nobody has stated or used for long; its state `decay` is "dim", "softly_forgotten" or "forgotten". */
        Fading: {
            fact: components["schemas"]["Fact"];
            /** @enum {string} */
            decay: "fresh" | "dim" | "soft_forgotten" | "forgotten";
        };
        /** @description The receipt of a deletion, or of a dry run, which has a hash `plan`: send it back to confirm the deletion. */
        ForgetAnswer: {
            plan: string | null;
            receipt: components["schemas"]["ForgetReceipt"];
        };
        /**
         * @description A request to forget exactly one thing: an episode, thread, entity, speaker, source, fact, or everything.
         *
         *     Without `confirm` nothing is deleted, and the plan is returned.
         * @example {
         *       "reason": "asked for",
         *       "speaker": "Ann"
         *     }
         */
        ForgetBody: {
            /** @description The id of an episode. */
            episode?: string | null;
            /** @description A thread, with all its episodes. */
            thread?: string | null;
            /** @description The id or a name of an entity, with all episodes that mention it. */
            entity?: string | null;
            /** @description A speaker, with all their episodes. */
            speaker?: string | null;
            /** @description A source, with all episodes from it. */
            source?: string | null;
            /** @description The id of a fact, with all episodes that state it. */
            fact?: string | null;
            /**
             * @description Everything in the namespace.
             * @default false
             */
            everything?: boolean;
            /** @description With `episode`: only the characters from start to end. */
            span?: [
                number,
                number
            ] | null;
            /**
             * @description Why; it is logged, so it must not contain what is forgotten.
             * @default
             */
            reason?: string;
            /** @description Whether the database also rewrites its files without the data. */
            erase?: boolean | null;
            /** @description The `plan` that the same request without `confirm` returned. */
            confirm?: string | null;
        };
        /**
         * @description The result of `privacy.forget`: the ids of everything that was deleted, or would be deleted in a dry run.
         *
         *     `episodes` (messages), `facts` and `entities` are deleted. `restored` facts are true again, because the fact that
         *     ended them is deleted. `changed` facts have another wording or time. `unread` episodes made sense only together with
         *     deleted ones; `episodes.resume` processes them again. `redacted` has the new ids of episodes of which some
         *     characters were deleted. `texts` maps ids to texts, in a dry run only.
         *
         *     `parts` is the number of transactions. `residue` lists the traces found afterwards: empty if there are none, None in
         *     a dry run. Ids are always searched for. Words, names, quotes and vectors are searched for on request, in `searched`
         *     properties. `erased` says whether the server's files are clean too; if not, `advice` says what to do. `cleared` is
         *     the number of caches of this process that were emptied. `checkpoints` are the threads whose LangGraph checkpoints
         *     were deleted. `receipt` is the id in the audit log, and `head` the hash of its entry.
         */
        ForgetReceipt: {
            /** @default episode */
            kind: string;
            /** @default [] */
            episodes: string[];
            /** @default [] */
            facts: string[];
            /** @default [] */
            entities: string[];
            /** @default [] */
            restored: string[];
            /** @default [] */
            changed: string[];
            /** @default [] */
            unread: string[];
            /** @default [] */
            redacted: string[];
            /** @default 1 */
            parts: number;
            /** @default false */
            dry_run: boolean;
            /** Format: date-time */
            at: string;
            /** @default user */
            by: string;
            /** @default  */
            reason: string;
            texts: {
                [key: string]: string;
            };
            residue: components["schemas"]["Residue"][] | null;
            /** @default 0 */
            searched: number;
            erased: boolean | null;
            /** @default  */
            advice: string;
            /** @default 0 */
            cleared: number;
            /** @default [] */
            checkpoints: string[];
            /** @default  */
            receipt: string;
            /** @default  */
            head: string;
        };
        /** @description A graph in Cytoscape's format. `more` is true if facts beyond the limit were left out. */
        Graph: {
            elements: components["schemas"]["Elements"];
            /** @default false */
            more: boolean;
        };
        /**
         * @description Notes for the next session or agent: open questions, plans, decisions, changes and the last messages.
         *
         *     `pending` are open questions, and `episodes` the last messages, earliest first. If `thread` is set, plans, decisions
         *     and messages are only from this conversation.
         */
        Handoff: {
            /** Format: date-time */
            believed_at: string;
            thread: string | null;
            as_of: string | null;
            /** @default [] */
            pending: components["schemas"]["Arbitration"][];
            /** @default [] */
            plans: components["schemas"]["Fact"][];
            /** @default [] */
            decisions: components["schemas"]["Fact"][];
            /** @default [] */
            changes: components["schemas"]["Change"][];
            /** @default [] */
            episodes: components["schemas"]["Episode"][];
        };
        /** @description A search that found a result: its `retriever` (``words``, ``meaning``, ``graph``), `rank` and `score` there. */
        Hit: {
            retriever: string;
            rank: number;
            score: number;
        };
        /**
         * @description A report on a person: the facts about them, and the changes of these facts since `since`.
         *
         *     `states` are true now, `plans` are intended, and `events` have happened, latest first. `entity` has a summary of the
         *     person; it is None in a report on the past.
         */
        Identity: {
            /** Format: date-time */
            believed_at: string;
            name: string;
            as_of: string | null;
            /** Format: date-time */
            since: string;
            entity: components["schemas"]["Entity"] | null;
            /** @default [] */
            states: components["schemas"]["Fact"][];
            /** @default [] */
            plans: components["schemas"]["Fact"][];
            /** @default [] */
            events: components["schemas"]["Fact"][];
            /** @default [] */
            changes: components["schemas"]["Change"][];
        };
        /**
         * @description A decision on whether two entities are the same person or thing, or an open question about that.
         *
         *     `kind`: ``merge``, ``split`` or ``doubt`` (is the new entity `second` the same as `entity`?). `state`: ``waiting``
         *     (an open doubt), ``done``, ``apart`` (a person said that they differ) or ``undone``. `second`: None after a merge.
         *     `facts`: how many facts moved. `latest`: in a doubt, the last sentences about each entity.
         */
        IdentityDecision: {
            id: string;
            /** @enum {string} */
            kind: "merge" | "split" | "doubt";
            /** @enum {string} */
            state: "waiting" | "done" | "apart" | "undone";
            entity: components["schemas"]["Entity"];
            second: components["schemas"]["Entity"] | null;
            /** @default 0 */
            facts: number;
            confidence: number | null;
            /**
             * @default [
             *       [],
             *       []
             *     ]
             */
            latest: [
                string[],
                string[]
            ];
            /** Format: date-time */
            created_at: string;
            by: string | null;
            at: string | null;
            /** @default  */
            reason: string;
            undone_by: string | null;
            undone_at: string | null;
            /** @default  */
            undone_reason: string;
        };
        /**
         * @description The result of importing data into `namespace`. `records`: the number of imported records of each kind.
         *
         *     `embedded`: vectors computed again. `replaced`: the earlier content was deleted. `left_out`: unsupported records,
         *     counted by reason. `repeated`: records stored before. `unread`: errors of messages that were saved but not
         *     processed.
         */
        ImportResult: {
            namespace: string;
            records: {
                [key: string]: number;
            };
            /** @default 0 */
            embedded: number;
            /** @default false */
            replaced: boolean;
            left_out: {
                [key: string]: number;
            };
            /** @default 0 */
            repeated: number;
            /** @default [] */
            unread: string[];
        };
        /**
         * @description One line of a prompt text: its text, its estimated tokens, and the `kind` and `id` of the result it shows.
         *
         *     `heading` is the day above the line if lines are grouped by day, else "".
         */
        Line: {
            /** @enum {string} */
            kind: "facts" | "entities" | "communities" | "episodes";
            id: string;
            text: string;
            tokens: number;
            /** @default  */
            heading: string;
        };
        /** @description An entity that is linked to another entity by facts about both; `facts` is the number of these facts. */
        Neighbour: {
            name: string;
            /** @default Entity */
            type: string;
            facts: number;
        };
        /** @description The entities and facts around an entity in the graph, up to some number of facts away. */
        Neighbourhood: {
            depths: {
                [key: string]: number;
            };
            /** @default [] */
            entities: components["schemas"]["Entity"][];
            /** @default [] */
            facts: components["schemas"]["Fact"][];
        };
        /** @description A node in Cytoscape's format. */
        Node: {
            /**
             * @default nodes
             * @constant
             */
            group: "nodes";
            data: components["schemas"]["NodeData"];
        };
        /** @description An entity as a node. `facts` are the sentences of its facts that have no object, so no edge. */
        NodeData: {
            id: string;
            label: string;
            type: string;
            /** @default  */
            summary: string;
            /** @default 0 */
            mention_count: number;
            first_seen: string | null;
            last_seen: string | null;
            /** @default [] */
            facts: string[];
        };
        Page_AddResult_: {
            items: components["schemas"]["AddResult"][];
            next: string | null;
        };
        Page_AuditEntry_: {
            items: components["schemas"]["AuditEntry"][];
            next: string | null;
        };
        Page_Change_: {
            items: components["schemas"]["Change"][];
            next: string | null;
        };
        Page_Community_: {
            items: components["schemas"]["Community"][];
            next: string | null;
        };
        Page_Consequence_: {
            items: components["schemas"]["Consequence"][];
            next: string | null;
        };
        Page_DailyUsage_: {
            items: components["schemas"]["DailyUsage"][];
            next: string | null;
        };
        Page_Entity_: {
            items: components["schemas"]["Entity"][];
            next: string | null;
        };
        Page_Episode_: {
            items: components["schemas"]["Episode"][];
            next: string | null;
        };
        Page_Fact_: {
            items: components["schemas"]["Fact"][];
            next: string | null;
        };
        Page_IdentityDecision_: {
            items: components["schemas"]["IdentityDecision"][];
            next: string | null;
        };
        Page_PredicateInfo_: {
            items: components["schemas"]["PredicateInfo"][];
            next: string | null;
        };
        Page_Review_: {
            items: components["schemas"]["Review"][];
            next: string | null;
        };
        Page_Source_: {
            items: components["schemas"]["Source"][];
            next: string | null;
        };
        Page_StaleFact_: {
            items: components["schemas"]["StaleFact"][];
            next: string | null;
        };
        Page_TimelineEvent_: {
            items: components["schemas"]["TimelineEvent"][];
            next: string | null;
        };
        Page_str_: {
            items: string[];
            next: string | null;
        };
        /**
         * @description A predicate that facts use. A synonym (`name` "RESIDES_IN") is stored as its `canonical` name ("LIVES_IN").
         *
         *     `single_valued` says whether a subject has one object at a time. `origin` is who defined it: a person
         *     (``corrected``), the settings (``declared``), built-in rules, or a model (``learned``).
         */
        PredicateInfo: {
            name: string;
            canonical: string;
            single_valued: boolean | null;
            /** @enum {string} */
            origin: "corrected" | "declared" | "rules" | "learned";
        };
        /**
         * @example {
         *       "canonical": "LIVES_IN",
         *       "single_valued": true
         *     }
         */
        PredicatesUpdateRequest: {
            /** @description The canonical name under which it is stored. */
            canonical?: string | null;
            /** @description Whether a subject has only one object of this predicate at a time. */
            single_valued?: boolean | null;
        };
        /** @description A fact from which another fact was derived. If it ends or is `refuted`, the other fact becomes doubtful. */
        Premise: {
            id: string;
            sentence: string;
            /** @default false */
            refuted: boolean;
        };
        /**
         * @example {
         *       "dry_run": true,
         *       "expired_days": 90
         *     }
         */
        PrivacyEvictRequest: {
            /** @description Evict facts that ended at least this many days ago. */
            expired_days?: number | null;
            /**
             * @description Whether to evict entities without facts.
             * @default false
             */
            orphans?: boolean;
            /** @description The number of entities to keep. */
            max_entities?: number | null;
            /**
             * @description Whether to delete expired episodes.
             * @default false
             */
            expired_episodes?: boolean;
            /**
             * @description Whether to change nothing and only return what would be done.
             * @default false
             */
            dry_run?: boolean;
        };
        /**
         * @description A problem response (RFC 9457).
         *
         *     `title` is the standard phrase of the HTTP status. `detail` says what was wrong and what to do; `errors` lists
         *     invalid fields, if any.
         */
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @default  */
            request_id?: string;
            errors?: {
                [key: string]: string;
            }[] | null;
        };
        /**
         * @description The current facts about an entity, grouped by topic; ``str(profile)`` is text for a prompt.
         *
         *     `left_out` has the ids of the facts for which `max_tokens` left no room. `tokens` is the estimated length of the
         *     text.
         */
        Profile: {
            entity: string;
            /** @default [] */
            topics: components["schemas"]["ProfileTopic"][];
            /** @default [] */
            left_out: string[];
            /** @default  */
            text: string;
            /** @default 0 */
            tokens: number;
        };
        /**
         * @description One entry of a profile: its `content`, `when` it is true (in words), and the ids of the `facts` it is based on.
         *
         *     `mark` is ``disputed``, ``doubtful``, ``not confirmed by its words`` or empty.
         */
        ProfileSlot: {
            content: string;
            when: string;
            valid_at: string | null;
            invalid_at: string | null;
            /**
             * @default instant
             * @enum {string}
             */
            precision: "instant" | "day" | "weekend" | "week" | "month" | "season" | "year" | "about" | "by";
            /**
             * @default instant
             * @enum {string}
             */
            end_precision: "instant" | "day" | "weekend" | "week" | "month" | "season" | "year" | "about" | "by";
            /** @default 1 */
            confidence: number;
            /** @default  */
            mark: string;
            facts: string[];
        };
        /** @description A sub-topic of a profile, such as "employer" in "work". Of its entries, the ones that hold longest come first. */
        ProfileSubTopic: {
            name: string;
            /** @default  */
            description: string;
            slots: components["schemas"]["ProfileSlot"][];
        };
        /** @description A topic of a profile with its sub-topics, in the order in which the profile schema lists them. */
        ProfileTopic: {
            name: string;
            /** @default  */
            description: string;
            sub_topics: components["schemas"]["ProfileSubTopic"][];
        };
        /**
         * @description The time that a question asks about: from `since` until before `until`; None is an open end.
         *
         *     `believed_at`: answer as the memory would have answered at that time. `words`: the time words in the question, such
         *     as "last May", or None. `reading`: a sentence that explains how the time was understood.
         */
        QueryTime: {
            since: string | null;
            until: string | null;
            /** Format: date-time */
            believed_at: string;
            words: string | null;
            reading: string;
        };
        /** @description An estimated number: its most likely value, and its lowest and highest value. */
        Range: {
            low: number;
            likely: number;
            high: number;
        };
        /**
         * @description A note on a message in search results: a fact in it has changed, because of the message with the id `by`.
         *
         *     `kind`: ``ended`` (no longer true, since `at`); ``fulfilled``, ``dropped`` or ``replaced`` (the outcome of a plan,
         *     at `at`); ``contradicted`` (not believed); ``contradicts`` (believed, unlike a contradicting fact); ``disputed`` (a
         *     person must decide); ``refused`` (a person rejected it).
         */
        Remark: {
            /** @enum {string} */
            kind: "ended" | "fulfilled" | "dropped" | "replaced" | "contradicted" | "contradicts" | "disputed" | "refused";
            sentence: string;
            at: string | null;
            /**
             * @default instant
             * @enum {string}
             */
            precision: "instant" | "day" | "weekend" | "week" | "month" | "season" | "year" | "about" | "by";
            by: string | null;
            by_source_id: string | null;
        };
        /**
         * @description A trace of deleted content that is still stored, in the property `name` of a node or relationship.
         *
         *     `label`, `id`: the node or relationship. `trace`: the kind of content found (``id``, ``word``, ``name``, ``quote``,
         *     ``text`` or ``vector``), or ``replica`` if `name` is the address of a replica that may still have it.
         */
        Residue: {
            label: string;
            name: string;
            /** @default  */
            id: string;
            trace: string;
        };
        /**
         * @description A verdict (how two facts relate, such as a contradiction) that waits for a person or has taken effect.
         *
         *     `kind`: the relation. `confidence` (0 to 1) and `reason` are those of the model. `ruling`: the current effect.
         *     `pending`: the fact stated later. `existing`: the fact that it may end or refute. `preferred`: the id of the fact
         *     that the model believes. `decided_by`: who decided last, or ``"auto"``; `decided_at`: when. A retraction or an
         *     admission (approval of a new fact) is about one fact, which is both `pending` and `existing`.
         */
        Review: {
            id: string;
            /** @enum {string} */
            kind: "duplicate" | "supersedes" | "conflicts" | "complements" | "temporary" | "unrelated" | "retracted" | "admission" | "fulfilled" | "dropped" | "replaced";
            /** @enum {string} */
            ruling: "supersedes" | "conflicts" | "waiting" | "refused" | "both" | "fulfilled" | "dropped" | "replaced";
            confidence: number;
            reason: string;
            pending: components["schemas"]["Fact"];
            existing: components["schemas"]["Fact"];
            preferred: string | null;
            /** Format: date-time */
            created_at: string;
            /** @default auto */
            decided_by: string;
            decided_at: string | null;
            /** @default [] */
            decisions: components["schemas"]["Decision"][];
        };
        /**
         * @example {
         *       "choice": "reject"
         *     }
         */
        ReviewsDecideIdentityRequest: {
            /**
             * @description The decision.
             * @enum {string}
             */
            choice: "accept" | "reject";
            /** @description The person who decides; the name of the key if left out. */
            by?: string | null;
            /**
             * @description The reason, which is stored.
             * @default
             */
            reason?: string;
        };
        /**
         * @example {
         *       "choice": "accept",
         *       "reason": "she told me herself"
         *     }
         */
        ReviewsDecideRequest: {
            /**
             * @description The decision.
             * @enum {string}
             */
            choice: "accept" | "reject" | "edit";
            /** @description The person who decides; the name of the key if left out. */
            by?: string | null;
            /**
             * @description The reason, which is stored.
             * @default
             */
            reason?: string;
            /** @description With `edit`: how the two facts relate to each other. */
            verdict?: ("duplicate" | "supersedes" | "conflicts" | "complements" | "temporary" | "unrelated" | "retracted" | "admission" | "fulfilled" | "dropped" | "replaced") | null;
            /** @description When it became true, as exactly as known (`2024-05`). */
            valid_at?: string | null;
            /** @description When it stopped being true, as exactly as known (`2024-05`). */
            invalid_at?: string | null;
            /** @description The `ruling` that the decision is based on; rejected if it has changed. */
            seen?: ("supersedes" | "conflicts" | "waiting" | "refused" | "both" | "fulfilled" | "dropped" | "replaced") | null;
        };
        ReviewsUndoRequest: {
            /** @description The person who decides; the name of the key if left out. */
            by?: string | null;
            /**
             * @description The reason, which is stored.
             * @default
             */
            reason?: string;
        };
        /**
         * @example {
         *       "as_of": "2024-02-01",
         *       "limit": 5,
         *       "question": "Where does Ann live?"
         *     }
         */
        SearchRequest: {
            /** @description A question or search words; times in it (`in 2023`) decide which facts come first. */
            question: string;
            /**
             * @description The most items to return.
             * @default 10
             */
            limit?: number;
            /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
            as_of?: string | null;
            /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
            during?: string | null;
            /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
            believed_at?: string | null;
            /**
             * @description Whether to include facts that wait for review.
             * @default false
             */
            unreviewed?: boolean;
            /** @description The thread (conversation). */
            thread?: string | null;
            /** @description Names of entities near which to search. */
            center?: string[] | null;
            /** @description The person that `I` and `my` in the question mean. */
            asker?: string | null;
            /** @description A filter; in a query it is JSON. */
            where?: {
                [key: string]: unknown;
            } | null;
            /** @description How to search and rank: the name of a recipe, or a recipe. */
            recipe?: string | {
                [key: string]: unknown;
            } | null;
            /**
             * @description Whether to explain the rank of each result.
             * @default false
             */
            explain?: boolean;
            /** @description Further namespaces to read; the key must allow each. */
            recall_from?: string[] | null;
        };
        /**
         * @description The results of a search, best first in each kind; `episodes` are stored messages and texts.
         *
         *     `time` is the time that the question asks about. `relevance` is the probability, from 0 to 1, that the memory has an
         *     answer; `answerable` is the conclusion from it. `explanations` are set on request. `skipped` are search methods that
         *     the recipe left out. `degraded` is set if the embedding model failed, so that only words and the graph were
         *     searched. `namespaces`: those that were searched, if several.
         */
        SearchResults: {
            question: string;
            time: components["schemas"]["QueryTime"] | null;
            /** @default [] */
            facts: components["schemas"]["Fact"][];
            /** @default [] */
            entities: components["schemas"]["Entity"][];
            /** @default [] */
            communities: components["schemas"]["Community"][];
            /** @default [] */
            episodes: components["schemas"]["Episode"][];
            relevance: number | null;
            answerable: components["schemas"]["Answerable"] | null;
            /** @default [] */
            explanations: components["schemas"]["Explanation"][];
            /** @default [] */
            skipped: string[];
            degraded: string | null;
            /** @default [] */
            namespaces: string[];
        };
        /**
         * @description A quote that states a fact: `quote` is ``content[start:end]`` of the episode (message) with the id `episode`.
         *
         *     `at`: when it was said. `source`, `source_id` (its id there), `trust` (0 to 1), `labels`: those of the message.
         */
        Source: {
            episode: string;
            source: string | null;
            source_id: string | null;
            speaker: string | null;
            /** Format: date-time */
            at: string;
            start: number;
            end: number;
            quote: string;
            /** @default 1 */
            trust: number;
            labels: {
                [key: string]: string | number | boolean | (string | number | boolean)[];
            };
        };
        /**
         * @description A fact that may have changed since it was last stated, and a question to ask the user about it.
         *
         *     `freshness`, from 0 to 1, is how likely it still holds, by its age and kind; see `GraphMemory.facts.stale`.
         */
        StaleFact: {
            fact: components["schemas"]["Fact"];
            freshness: number;
            /** Format: date-time */
            last_said: string;
            question: string;
        };
        /**
         * @description The number of episodes (stored messages and texts), entities, facts and other objects in a namespace.
         *
         *     `blocks`: texts that agents edit. `waiting`, `failed`, `skipped`: episodes not yet processed, with errors, left out.
         *     `reviews`: pairs of facts that wait for a person's decision. `paused`: new episodes are refused.
         */
        Stats: {
            /** @default 0 */
            episodes: number;
            /** @default 0 */
            messages: number;
            /** @default 0 */
            blocks: number;
            /** @default 0 */
            waiting: number;
            /** @default 0 */
            failed: number;
            /** @default 0 */
            skipped: number;
            /** @default 0 */
            entities: number;
            /** @default 0 */
            facts: number;
            /** @default 0 */
            current_facts: number;
            /** @default 0 */
            reviews: number;
            /** @default 0 */
            communities: number;
            /** @default false */
            paused: boolean;
        };
        /**
         * @description The model usage of one step of processing an episode (a stored message or text).
         *
         *     `step` is the name of the step; `seconds` is how long it took, with all waiting.
         */
        StepUsage: {
            /** @default 0 */
            calls: number;
            /** @default 0 */
            input_tokens: number;
            /** @default 0 */
            output_tokens: number;
            /** @default 0 */
            cached_tokens: number;
            /** @default 0 */
            dropped: number;
            /** @default [] */
            given_up: string[];
            step: string;
            seconds: number;
        };
        /** @description A date in the history of a fact: when it ``began`` or ``ended``; without a known start, when it was ``said``. */
        TimelineEvent: {
            /** Format: date-time */
            at: string;
            /**
             * @default instant
             * @enum {string}
             */
            precision: "instant" | "day" | "weekend" | "week" | "month" | "season" | "year" | "about" | "by";
            /** @enum {string} */
            kind: "began" | "ended" | "said";
            fact: components["schemas"]["Fact"];
        };
        /** @description How much a language model was used: the numbers of requests and of tokens. Add two usages with ``+``. */
        Usage: {
            /** @default 0 */
            calls: number;
            /** @default 0 */
            input_tokens: number;
            /** @default 0 */
            output_tokens: number;
            /** @default 0 */
            cached_tokens: number;
            /** @default 0 */
            dropped: number;
            /** @default [] */
            given_up: string[];
        };
        /**
         * @example {
         *       "episodes": [
         *         {
         *           "at": "2024-05-14T09:30:00Z",
         *           "content": "I moved to Oslo last week!",
         *           "speaker": "Ann"
         *         }
         *       ]
         *     }
         */
        UsageEstimateRequest: {
            /** @description Episodes, as in `POST /episodes`. */
            episodes: components["schemas"]["EpisodeInput"][];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    "graph.global": {
        parameters: {
            query?: {
                /** @description The namespace. */
                namespace?: string;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
                during?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description A filter; in a query it is JSON. */
                where?: string | null;
                /** @description The most facts; the latest come first. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Graph"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "graph.around": {
        parameters: {
            query?: {
                /** @description The namespace. */
                namespace?: string;
                /** @description The most steps from the entity. */
                depth?: number;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
                during?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The most facts; the latest come first. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The id or a name of an entity. */
                entity_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Graph"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "privacy.forget": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForgetBody"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForgetAnswer"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "episodes.list": {
        parameters: {
            query?: {
                /** @description A filter; in a query it is JSON. */
                where?: string | null;
                /** @description The most items to return. */
                limit?: number;
                /** @description Only episodes with one of these statuses. */
                status?: components["schemas"]["EpisodeStatus"][] | null;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Episode_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "episodes.save": {
        parameters: {
            query?: never;
            header?: {
                /** @description Requests with the same key save one episode. The key becomes its `source_id` if that is left out. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EpisodeBody"];
            };
        };
        responses: {
            /** @description Saved, to be read later. `Location` is the episode; its `status` shows when it has been read. */
            202: {
                headers: {
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddResult"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "episodes.save_many": {
        parameters: {
            query?: never;
            header?: {
                /** @description Requests with the same key save one episode. The key becomes its `source_id` if that is left out. */
                "Idempotency-Key"?: string | null;
            };
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EpisodesBody"];
            };
        };
        responses: {
            /** @description Saved, to be read later. `Location` is the episode; its `status` shows when it has been read. */
            202: {
                headers: {
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddedEpisodes"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "data.export": {
        parameters: {
            query?: {
                /** @description The format; `graphml` and `cytoscape` are for viewers. */
                form?: "jsonl" | "graphml" | "cytoscape";
                /** @description Whether to include embedding vectors. */
                embeddings?: boolean;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "application/xml": string;
                    "application/json": unknown;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "data.import_": {
        parameters: {
            query?: {
                /** @description Whether to replace the contents of the namespace. */
                replace?: boolean;
                /** @description Whether to use the file's embedding vectors. */
                embeddings?: boolean;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportResult"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "data.import_from": {
        parameters: {
            query?: {
                /** @description The user or group, if the export has several. */
                group?: string | null;
            };
            header?: never;
            path: {
                /** @description The memory product. */
                origin: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportResult"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    events: {
        parameters: {
            query?: never;
            header?: {
                /** @description Continue after this event. */
                "Last-Event-ID"?: string | null;
            };
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /**
             * @description `episode`: the new status of an episode (saved, waiting, read, skipped or failed), with the cost of reading.
             *     `fact.learned`, `fact.ended`, `fact.corrected`, `fact.retracted`, `fact.restored`, `fact.doubtful`, `fact.sure`: a
             *     change, with the fact before and after it. `fact.disputed`: a new fact may contradict another. `counts`: the number of
             *     episodes by status, and today's cost. After an interruption, some events may come twice.
             */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": unknown;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    search: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SearchRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResults"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    context: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ContextRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ContextView"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    profile: {
        parameters: {
            query: {
                /** @description The name or an alias of an entity. */
                name: string;
                /** @description Topics with their sub-topics, as JSON. */
                schema?: string | null;
                /** @description Whether to leave out facts that fit no topic of the schema. */
                strict?: boolean;
                /** @description The longest text, in tokens. */
                max_tokens?: number | null;
                /** @description Topics that come first, and are filled first. */
                prefer_topics?: string[];
                /** @description The only topics to include. */
                only_topics?: string[];
                /** @description The most sub-topics of a topic; the last one holds the rest. */
                max_subtopics?: number;
                /** @description The longest content of a sub-topic, in tokens. */
                max_slot_tokens?: number;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Profile"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    stats: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pause: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": boolean;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    unpause: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": boolean;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "episodes.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of an episode. */
                episode: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Episode"] | null;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "episodes.retry": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EpisodesRetryRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_AddResult_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "episodes.summarise": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EpisodesSummariseRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Episode"] | null;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "episodes.deepen": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EpisodesDeepenRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_AddResult_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.list": {
        parameters: {
            query?: {
                /** @description A filter; in a query it is JSON. */
                where?: string | null;
                /** @description An entity, by its name, an alias or its id. */
                about?: string | null;
                /** @description The most items to return. */
                limit?: number;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
                during?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description Whether to include facts that wait for review. */
                unreviewed?: boolean;
                /** @description Further namespaces to read; the key must allow each. */
                recall_from?: string[] | null;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Fact_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.add": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FactsAddRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AddResult"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.add_many": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FactsAddManyRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_AddResult_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.stale": {
        parameters: {
            query?: {
                /** @description An entity, by its name, an alias or its id. */
                about?: string | null;
                /** @description The time for which to judge; `believed_at` or now if left out. */
                at?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The highest freshness, from 0 to 1. */
                below?: number;
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_StaleFact_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.get": {
        parameters: {
            query?: {
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
            };
            header?: never;
            path: {
                /** @description The id of a fact. */
                fact: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Fact"] | null;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.explain": {
        parameters: {
            query?: {
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
            };
            header?: never;
            path: {
                /** @description The id of a fact. */
                fact: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactExplanation"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.sources": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The id of a fact. */
                fact: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Source_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.evolution": {
        parameters: {
            query?: {
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The id of a fact. */
                fact: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Fact_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.consequences": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The id of a fact. */
                fact: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Consequence_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.retract": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a fact. */
                fact: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FactsRetractRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Review"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.replace": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of a fact. */
                fact: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["FactsReplaceRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Review"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.changes": {
        parameters: {
            query: {
                /** @description From this time on. An ISO 8601 time, or words such as `last March`. */
                since: string;
                /** @description Before this time. An ISO 8601 time, or words such as `last March`. */
                until?: string | null;
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Change_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.list": {
        parameters: {
            query?: {
                /** @description Words in names and summaries; the last may be the start of a word. */
                like?: string | null;
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Entity_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.card": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
                during?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
            };
            header?: never;
            path: {
                /** @description The name or an alias of an entity. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntityCard"] | null;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.about": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
                during?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description Whether to include facts that wait for review. */
                unreviewed?: boolean;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The name or an alias of an entity. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Fact_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.history": {
        parameters: {
            query?: {
                /** @description A predicate in any wording. */
                predicate?: string | null;
                /** @description The most items to return. */
                limit?: number;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The name or an alias of an entity. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Fact_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "facts.timeline": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The name or an alias of an entity. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_TimelineEvent_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.around": {
        parameters: {
            query?: {
                /** @description The most steps from the entity, from 1 to 6. */
                steps?: number;
                /** @description The most items to return. */
                limit?: number;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
                during?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
            };
            header?: never;
            path: {
                /** @description The name or an alias of an entity. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Neighbourhood"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.path": {
        parameters: {
            query: {
                /** @description Another entity, by its name, an alias or its id. */
                target: string;
                /** @description The most steps from the entity, from 1 to 6. */
                steps?: number;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description Only what was true at some time in this period: words such as `last year`, or `START..END`, where one of them may be left out. */
                during?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The name or an alias of an entity. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Fact_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.similar": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The name or an alias of an entity. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Entity_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.merge": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name or id of the entity to keep. */
                into: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EntitiesMergeRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_IdentityDecision_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.split": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The name or id of the entity to split. */
                entity: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EntitiesSplitRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IdentityDecision"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.decisions": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_IdentityDecision_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reviews.identities": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_IdentityDecision_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "entities.undo": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the decision. */
                decision: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["EntitiesUndoRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IdentityDecision"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reviews.decide_identity": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the doubt. */
                doubt: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReviewsDecideIdentityRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IdentityDecision"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "communities.list": {
        parameters: {
            query?: {
                /** @description The level of the communities, from 0. */
                level?: number | null;
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Community_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "communities.get": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The id of a community, or the start of its name. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CommunityCard"] | null;
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "communities.refresh": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CommunitiesRefreshRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CommunityRefresh"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reviews.list": {
        parameters: {
            query?: {
                /** @description Whether to list decided reviews instead of waiting ones. */
                decided?: boolean;
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Review_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reviews.conflicts": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Review_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reviews.verdicts": {
        parameters: {
            query?: {
                /** @description The id of a fact. */
                fact?: string | null;
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Review_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reviews.decide": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the review. */
                review: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReviewsDecideRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Review"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reviews.undo": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the review. */
                review: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ReviewsUndoRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Review"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "predicates.list": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_PredicateInfo_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "predicates.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The predicate to change. */
                name: string;
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PredicatesUpdateRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PredicateInfo"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reports.digest": {
        parameters: {
            query?: {
                /** @description Changes learned from this time on. An ISO 8601 time, or words such as `last March`. */
                since?: string;
                /** @description Before this time. An ISO 8601 time, or words such as `last March`. */
                until?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The most items to return. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Digest"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reports.identity": {
        parameters: {
            query?: {
                /** @description A person's name; the most frequent speaker if left out. */
                about?: string | null;
                /** @description Changes from this time on. An ISO 8601 time, or words such as `last March`. */
                since?: string;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The most items to return. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "reports.handoff": {
        parameters: {
            query?: {
                /** @description The thread (conversation). */
                thread?: string | null;
                /** @description Only what was true at this time. An ISO 8601 time, or words such as `last March`. */
                as_of?: string | null;
                /** @description What the memory believed at this time. An ISO 8601 time, or words such as `last March`. */
                believed_at?: string | null;
                /** @description The most items to return. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Handoff"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "usage.spent": {
        parameters: {
            query?: {
                /** @description The number of days, up to today. */
                days?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_DailyUsage_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "usage.estimate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UsageEstimateRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Estimate"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "privacy.evict": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PrivacyEvictRequest"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EvictionResult"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "privacy.audit": {
        parameters: {
            query?: {
                /** @description The most items to return. */
                limit?: number;
                /** @description The `next` of the previous page; repeat the other parameters of that request. */
                cursor?: string | null;
            };
            header?: never;
            path: {
                /** @description The namespace; write a slash in it as `%2F`. */
                namespace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_AuditEntry_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "data.namespaces": {
        parameters: {
            query?: {
                state?: ("awake" | "asleep") | null;
                limit?: number;
                cursor?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_str_"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "server.key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            /** @description A problem (RFC 9457). */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    "server.health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: string;
                    };
                };
            };
        };
    };
}
