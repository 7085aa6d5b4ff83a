import createClient, { type Client, defaultPathSerializer } from "openapi-fetch";
import { orAbort, sleep } from "./abort.js";
import { KGMemoryError } from "./errors.js";
import { type MemoryEvent, readEvents } from "./events.js";
import type { components, operations, paths } from "./openapi.js";

type Schemas = components["schemas"];
type Query<Operation extends keyof operations> = NonNullable<operations[Operation]["parameters"]["query"]>;
type Unasked<Name extends "SearchRequest" | "ContextRequest"> = Omit<Schemas[Name], "question">;

/** The parts of a request that a call has from its options. */
interface Parts<Options> {
  path: { namespace: string };
  signal: AbortSignal | undefined;
  fields: Omit<Options, keyof CallOptions>;
}

/** A JSON object, such as the filter `{ speaker: "Ann" }`. */
type Filter = Record<string, unknown>;
/** An episode to add: its `content`, and for example its `speaker` and `at`, the ISO 8601 time when it was said. */
export type EpisodeInput = Schemas["EpisodeBody"];
/** A page of facts. Pass `next` as `cursor` to get the next page; it is null on the last page. */
export type FactPage = Schemas["Page_Fact_"];
export type AddResult = Schemas["AddResult"];
export type Context = Schemas["ContextView"];
export type Episode = Schemas["Episode"];
export type Fact = Schemas["Fact"];
export type FactExplanation = Schemas["FactExplanation"];
export type ForgetAnswer = Schemas["ForgetAnswer"];
export type Profile = Schemas["Profile"];
export type Review = Schemas["Review"];
export type SearchResults = Schemas["SearchResults"];
export type Stats = Schemas["Stats"];

const ROOT = "/v1/namespaces/{namespace}";
/** The first and the longest pause between two looks at the status of an episode, in milliseconds. */
const [FIRST_LOOK, LONGEST_LOOK] = [100, 2000];
/** The pause before a stream of events that ended is opened again, in milliseconds. */
const RECONNECT = 2000;

/** The options of a client. */
export interface KGMemoryOptions {
  /** The address of the server, such as `http://127.0.0.1:8420`. */
  baseUrl: string;
  /** The key, which `kg-memory keys create` shows. Without any key the server answers its own machine only. */
  apiKey?: string;
  /** The namespace of all calls that name no other. Default: `default`. */
  namespace?: string;
  /** Replaces the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
  /** How often a request is repeated at most. Default: 3. */
  retries?: number;
}

/** The options of every call. */
export interface CallOptions {
  /** The namespace of this call. Default: that of the client. */
  namespace?: string;
  /** Aborts the call, which then throws the reason of the signal. `AbortSignal.timeout(5000)` limits its time. */
  signal?: AbortSignal;
}

/**
 * A client of `kg-memory serve`. Its methods have the names of the Python methods, in camel case; fields of requests
 * and answers have the names of the HTTP API.
 *
 * Every method throws `KGMemoryError` for an error of the server (401 without a valid key, 403 without the right, 404
 * for an unknown id, 422 for an invalid value) and for a server that does not answer. After 429, 502, 503, 504 and
 * network errors it repeats requests that are safe to repeat, after a pause.
 */
export class KGMemory {
  /** The client of all other routes, typed from OpenAPI: `memory.http.GET("/v1/key")`. It repeats no request. */
  readonly http: Client<paths>;
  readonly #namespace: string;
  readonly #retries: number;

  constructor({ baseUrl, apiKey, namespace = "default", fetch, retries = 3 }: KGMemoryOptions) {
    const headers: Record<string, string> = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
    this.http = createClient<paths>({ baseUrl, headers, fetch, pathSerializer: serializePath });
    this.#namespace = namespace;
    this.#retries = retries;
  }

  /**
   * Save *content*, a message or a text, and wait until its facts are read. Return the episode; look at its `status`:
   * `done`, or `failed`, `waiting` or `skipped` for a `reason`.
   *
   * It waits as long as no server or worker reads; `signal` limits that. An episode stays saved if waiting is aborted.
   */
  async add(content: string, options: Omit<EpisodeInput, "content"> & CallOptions = {}): Promise<Episode> {
    const { namespace, signal, ...fields } = options;
    return (await this.addMany([{ content, ...fields }], { namespace, signal }))[0]!;
  }

  /** Save *episodes*, at most 1,000, in the order in which they were said, and wait until all are read, as `add`. */
  async addMany(episodes: readonly EpisodeInput[], options: CallOptions = {}): Promise<Episode[]> {
    const saved = await this.episodes.save(episodes, options);
    const read: Episode[] = [];
    for (const { episode } of saved.reverse()) read.unshift(await this.#waitUntilRead(episode, options)); // last first
    return read;
  }

  /**
   * Return the facts, entities and messages that answer *question*, best first.
   *
   * `as_of` and `during` choose the time in which facts are true, `believed_at` that of the belief; `limit` is the most
   * items of each kind (10), `where` a filter.
   */
  search(question: string, options: Unasked<"SearchRequest"> & CallOptions = {}): Promise<SearchResults> {
    return this.#call(options, true, ({ path, signal, fields }) =>
      this.http.POST(`${ROOT}/search`, { params: { path }, body: { question, ...fields }, signal }),
    ) as Promise<SearchResults>;
  }

  /** Return what the memory knows about *question* as `text` for a prompt, of at most `max_tokens` tokens. */
  context(question: string, options: Unasked<"ContextRequest"> & CallOptions = {}): Promise<Context> {
    return this.#call(options, true, ({ path, signal, fields }) =>
      this.http.POST(`${ROOT}/context`, { params: { path }, body: { question, ...fields }, signal }),
    ) as Promise<Context>;
  }

  /** Return what is true of the entity *name*, now or at `as_of`, by topics, with a `text` for a prompt. */
  profile(
    name: string,
    options: Omit<Query<"profile">, "name" | "schema"> & { schema?: Filter } & CallOptions = {},
  ): Promise<Profile> {
    return this.#call(options, true, ({ path, signal, fields }) => {
      const query = { ...fields, name, schema: fields.schema && JSON.stringify(fields.schema) };
      return this.http.GET(`${ROOT}/profile`, { params: { path, query }, signal });
    });
  }

  /** Return the numbers of episodes, entities and facts in the namespace. */
  stats(options: CallOptions = {}): Promise<Stats> {
    return this.#call(options, true, ({ path, signal }) =>
      this.http.GET(`${ROOT}/stats`, { params: { path }, signal }),
    );
  }

  /** Calls about episodes: stored messages and texts. */
  readonly episodes = {
    /**
     * Save *episodes*, at most 1,000, and return at once; the server reads them afterwards.
     *
     * A repeated `source_id` saves nothing new. Without one an episode gets a random one, so that the request can be
     * repeated. If an episode is invalid (422), those before it are saved.
     */
    save: async (episodes: readonly EpisodeInput[], options: CallOptions = {}): Promise<AddResult[]> => {
      if (!episodes.length) return [];
      const header = { "Idempotency-Key": randomKey() };
      const answer: Schemas["AddedEpisodes"] = await this.#call(options, true, ({ path, signal }) => {
        const params = { path, header };
        return this.http.POST(`${ROOT}/episodes/batch`, { params, body: { episodes: [...episodes] }, signal });
      });
      return answer.episodes;
    },
  };

  /** Calls about facts. */
  readonly facts = {
    /** List facts, latest first, past ones too; with `as_of` those that held then. `where` is a filter. */
    list: (
      options: Omit<Query<"facts.list">, "where"> & { where?: Filter } & CallOptions = {},
    ): Promise<FactPage> =>
      this.#call(options, true, ({ path, signal, fields }) => {
        const query = { ...fields, where: fields.where && JSON.stringify(fields.where) };
        return this.http.GET(`${ROOT}/facts`, { params: { path, query }, signal });
      }),
    /** List the facts about the entity *name*, latest first, past ones too; with `as_of` those that held then. */
    about: (name: string, options: Query<"facts.about"> & CallOptions = {}): Promise<FactPage> =>
      this.#call(options, true, ({ path, signal, fields: query }) =>
        this.http.GET(`${ROOT}/entities/{name}/facts`, { params: { path: { ...path, name }, query }, signal }),
      ),
    /** List the periods in which each fact about *name* held, newest first; with *predicate* (`lives in`) of one. */
    history: (
      name: string,
      predicate?: string,
      options: Omit<Query<"facts.history">, "predicate"> & CallOptions = {},
    ): Promise<FactPage> =>
      this.#call(options, true, ({ path, signal, fields }) => {
        const params = { path: { ...path, name }, query: { ...fields, predicate } };
        return this.http.GET(`${ROOT}/entities/{name}/history`, { params, signal });
      }),
    /** Return the sources of the fact with the id *fact*, what it replaced, and what depends on it. */
    explain: (fact: string, options: Query<"facts.explain"> & CallOptions = {}): Promise<FactExplanation> =>
      this.#call(options, true, ({ path, signal, fields: query }) =>
        this.http.GET(`${ROOT}/facts/{fact}/explain`, { params: { path: { ...path, fact }, query }, signal }),
      ),
    /**
     * Replace the fact with the id *fact* by the one that `with_text` or the stored `episode` states; return the
     * decision, with its `reason`. Needs the right `review`. Throws 422 if the text states no other fact.
     */
    replace: (fact: string, options: Schemas["FactsReplaceRequest"] & CallOptions): Promise<Review> =>
      this.#call(options, false, ({ path, signal, fields: body }) =>
        this.http.POST(`${ROOT}/facts/{fact}/replace`, { params: { path: { ...path, fact } }, body, signal }),
      ),
  };

  /** Calls about deletion. */
  readonly privacy = {
    /**
     * Show what would be forgotten of one `episode`, `thread`, `entity`, `speaker`, `source` or `fact`, or of
     * `everything`, with a `plan`. With that plan as `confirm` and the same options, delete it for good.
     *
     * Throws 409 if the plan has changed meanwhile. Needs the right `forget`.
     */
    forget: (options: Schemas["ForgetBody"] & CallOptions): Promise<ForgetAnswer> =>
      this.#call(options, !options.confirm, ({ path, signal, fields: body }) =>
        this.http.POST(`${ROOT}/forget`, { params: { path }, body, signal }),
      ),
  };

  /**
   * Yield the changes in the namespace as they happen, within two seconds, until the loop is left or `signal` aborts.
   *
   * Begins now, or after the event with the id `lastEventId`. It opens the stream again when the connection breaks;
   * some events may then come twice. Throws the reason of `signal`, or `KGMemoryError` if the server does not answer.
   */
  async *events(
    { lastEventId, ...options }: CallOptions & { lastEventId?: string } = {},
  ): AsyncGenerator<MemoryEvent, void, undefined> {
    for (;;) {
      const header = { "Last-Event-ID": lastEventId };
      const body: ReadableStream<Uint8Array> = await this.#call(options, true, ({ path, signal }) =>
        this.http.GET(`${ROOT}/events`, { params: { path, header }, parseAs: "stream", signal }),
      );
      try {
        for await (const event of readEvents(body, options.signal)) {
          lastEventId = event.id;
          yield event;
        }
      } catch {
        options.signal?.throwIfAborted(); // otherwise the connection broke
      }
      await sleep(RECONNECT * (1 + Math.random()), options.signal);
    }
  }

  /** Look at an episode until it is read, fails, or waits for something other than its turn. */
  async #waitUntilRead(id: string, options: CallOptions): Promise<Episode> {
    for (let pause = FIRST_LOOK; ; pause = Math.min(pause * 1.5, LONGEST_LOOK)) {
      const episode: Episode = await this.#call(options, true, ({ path, signal }) =>
        this.http.GET(`${ROOT}/episodes/{episode}`, { params: { path: { ...path, episode: id } }, signal }),
      );
      if (episode.status !== "saved" && episode.status !== "working") return episode;
      await sleep(pause, options.signal);
    }
  }

  /**
   * Return what *send* gets, and repeat it after errors that a repetition may mend.
   *
   * *send* takes the parts of the request: the `path` values, the `signal`, and the *options* of this call alone as
   * `fields`. *safe*: whether the server may handle the request twice.
   */
  async #call<T, Options extends CallOptions>(
    { namespace = this.#namespace, signal, ...fields }: Options,
    safe: boolean,
    send: (parts: Parts<Options>) => Promise<{ data?: T; error?: unknown; response: Response }>,
  ): Promise<NonNullable<T>> {
    for (let tries = 0; ; tries++) {
      let failure: KGMemoryError;
      try {
        const { data, error, response } = await orAbort(send({ path: { namespace }, signal, fields }), signal);
        if (response.ok) return data as NonNullable<T>;
        failure = KGMemoryError.fromResponse(response, error);
      } catch (cause) {
        signal?.throwIfAborted();
        if (cause instanceof KGMemoryError) throw cause;
        failure = KGMemoryError.fromCause(cause);
      }
      const delay = tries < this.#retries ? failure.delay(tries, safe) : undefined;
      if (delay === undefined) throw failure;
      await sleep(delay * 1000, signal);
    }
  }
}

/** Return the URL path with *values* in it. Throws for `.` and `..`, which URLs cannot have as names. */
function serializePath(path: string, values: Record<string, unknown>): string {
  const wrong = Object.entries(values).find(([, value]) => value === "." || value === "..");
  if (wrong) throw new KGMemoryError({ title: "Invalid", detail: `${wrong[0]} must not be "${wrong[1]}"` });
  return defaultPathSerializer(path, values);
}

/** Return a random text of 32 characters. `crypto.randomUUID` is missing in pages without TLS. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
