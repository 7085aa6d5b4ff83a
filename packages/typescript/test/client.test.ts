/** The verbs of the client against a real server, and its behaviour after errors. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { KGMemory, KGMemoryError, type KGMemoryOptions, type MemoryEvent } from "temporal-kg-memory";
import { makeGraph } from "../examples/langgraph.js";
import { generate, TARGET } from "../scripts/generate.mjs";
import { startServer } from "../scripts/server.mjs";
import { Repeating } from "./model.js";

const BERGEN = { content: "I live in Bergen.", speaker: "Ann", at: "2024-01-10" };
const OSLO = { content: "I moved to Oslo last week!", speaker: "Ann", at: "2024-05-14" };
setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");
let server: Awaited<ReturnType<typeof startServer>>;
let memory: KGMemory;

function connect(options: Partial<KGMemoryOptions> = {}): KGMemory {
  return new KGMemory({ ...server, namespace: "ann", ...options });
}

before(async () => {
  server = await startServer();
  memory = connect();
  await memory.addMany([BERGEN, OSLO]);
});
after(() => server?.stop());

/** Run *call* with a client whose first requests fail: each of *faults* is an answer, or an error that is thrown. */
async function meet<T>(faults: (Response | Error)[], call: (client: KGMemory) => Promise<T>, retries = 3) {
  let requests = 0;
  const client = connect({
    retries,
    fetch: async (request) => {
      const fault = faults[requests++];
      if (fault instanceof Error) throw fault;
      return fault ?? fetch(request);
    },
  });
  const answer = await call(client).catch((error: unknown) => error);
  return { answer, requests };
}

/** Return the error of *call*, which must be a KGMemoryError. */
async function errorOf(call: Promise<unknown>): Promise<KGMemoryError> {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof KGMemoryError, `expected a KGMemoryError, got ${error}`);
  return error;
}

test("add returns the episode when it is read", async () => {
  const episode = await memory.add("My sister Bea works at Acme.", { speaker: "Ann", at: "2024-06-01", thread: "t" });
  assert.equal(episode.status, "done");
  assert.equal(episode.thread, "t");
  assert.ok((await memory.facts.about("Bea")).items.some((fact) => fact.sentence.includes("Acme")));
});

test("addMany returns the episodes in order", async () => {
  const read = await memory.addMany([BERGEN, OSLO], { namespace: "order" });
  const seen = read.map((episode) => [episode.content, episode.status]);
  assert.deepEqual(seen, [[BERGEN.content, "done"], [OSLO.content, "done"]]);
  assert.deepEqual(await memory.addMany([]), []);
});

test("save stores an episode of a source once", async () => {
  const [first] = await memory.episodes.save([{ ...BERGEN, source_id: "m-1" }], { namespace: "once" });
  const [second] = await memory.episodes.save([{ ...BERGEN, source_id: "m-1" }], { namespace: "once" });
  assert.deepEqual([first?.new, second?.new], [true, false]);
  assert.equal(first?.episode, second?.episode);
});

test("search answers as of a day", async () => {
  assert.equal((await memory.search("Where does Ann live?")).facts[0]?.sentence, "Ann lives in Oslo");
  const past = await memory.search("Where does Ann live?", { as_of: "2024-02-01", limit: 1 });
  assert.deepEqual(past.facts.map((fact) => fact.sentence), ["Ann lives in Bergen"]);
});

test("context is a text for a prompt", async () => {
  const context = await memory.context("Where does Ann live?", { max_tokens: 300 });
  assert.match(context.text, /Ann lives in Oslo/);
  assert.ok(context.tokens <= 300);
});

test("facts are listed by filter, by entity and by page", async () => {
  const listed = await memory.facts.list({ where: { predicate: "LIVES_IN" }, as_of: "2024-02-01" });
  assert.deepEqual(listed.items.map((fact) => fact.sentence), ["Ann lives in Bergen"]);
  const first = await memory.facts.history("Ann", "lives in", { limit: 1 });
  assert.ok(first.next);
  const second = await memory.facts.history("Ann", "lives in", { limit: 1, cursor: first.next });
  const sentences = [...first.items, ...second.items].map((fact) => fact.sentence);
  assert.deepEqual(sentences, ["Ann lives in Oslo", "Ann lives in Bergen"]);
  assert.ok((await memory.facts.about("Ann")).items.length > 0);
});

test("explain shows the words that state a fact", async () => {
  const [fact] = (await memory.facts.history("Ann", "lives in")).items;
  const { sources, evolution } = await memory.facts.explain(fact!.id);
  assert.match(sources[0]?.quote ?? "", /Oslo/);
  assert.equal(evolution.length, 2);
});

test("replace puts another fact in the place of one", async () => {
  const cy = connect({ namespace: "cy" });
  await cy.add("I work at Acme.", { speaker: "Cy", at: "2024-01-10" });
  const [fact] = (await cy.facts.about("Cy")).items;
  const review = await cy.facts.replace(fact!.id, { with_text: "Cy works at Globex.", reason: "he says so" });
  assert.equal(review.decided_by, "test");
  const now = await cy.facts.about("Cy", { as_of: new Date().toISOString() });
  assert.deepEqual(now.items.map((one) => one.sentence), ["Cy works at Globex"]);
});

test("forget shows a plan, and deletes what it confirms", async () => {
  const what = { speaker: "Dan", namespace: "dan" };
  await memory.add("I live in Rome.", what);
  const { plan, receipt } = await memory.privacy.forget(what);
  assert.equal(receipt.episodes.length, 1);
  assert.equal((await errorOf(memory.privacy.forget({ ...what, confirm: "another" }))).status, 409);
  assert.equal((await memory.stats({ namespace: "dan" })).episodes, 1);
  await memory.privacy.forget({ ...what, confirm: plan });
  assert.equal((await memory.stats({ namespace: "dan" })).episodes, 0);
});

test("profile lists what is true by topic", async () => {
  const schema = { home: { sub_topics: { city: { predicates: ["LIVES_IN"] } } } };
  assert.match((await memory.profile("Ann", { max_tokens: 200 })).text, /Oslo/);
  assert.equal((await errorOf(memory.profile("Ann", { schema: { home: 1 } }))).status, 422);
  assert.match((await memory.profile("Ann", { schema, as_of: "2024-02-01" })).text, /Bergen/);
});

test("text in other scripts and slashes in names return unchanged", async () => {
  const team = connect({ namespace: "团队/小明 50%" });
  assert.equal((await team.add("我住在上海。🌊", { speaker: "小明" })).content, "我住在上海。🌊");
  assert.match((await team.context("小明住在哪里?")).text, /上海/);
  assert.equal((await team.facts.about("小明")).items[0]?.objects[0], "上海");
});

test("namespaces are separate", async () => {
  const [bea, cem] = [connect({ namespace: "bea" }), connect({ namespace: "cem" })];
  await bea.add("I like tea.", { speaker: "Bea" });
  assert.deepEqual([(await bea.stats()).episodes, (await cem.stats()).episodes], [1, 0]);
  assert.deepEqual((await cem.search("tea")).episodes, []);
  assert.match((await errorOf(memory.stats({ namespace: ".." }))).message, /namespace must not be/);
});

test("errors have the details of the problem", async () => {
  const denied = await errorOf(connect({ apiKey: "kgm_wrong" }).stats());
  assert.deepEqual([denied.status, denied.title], [401, "Unauthorized"]);
  assert.match(denied.requestId, /^[0-9a-f]{16}$/);
  const invalid = await errorOf(memory.search("Ann", { limit: 0 }));
  assert.equal(invalid.status, 422);
  assert.equal(invalid.errors[0]?.field, "body.limit");
  const missing = await errorOf(memory.facts.explain("no-such-fact"));
  assert.equal(missing.status, 404);
  assert.match(missing.message, /^404 Not Found: .*no-such-fact/);
});

test("a request is repeated after 429 of a proxy", async () => {
  let requests = 0;
  const proxy = createServer(async (request, response) => {
    if (!requests++) return response.writeHead(429, { "Retry-After": "1" }).end();
    const { authorization = "" } = request.headers;
    const answer = await fetch(server.baseUrl + request.url, { headers: { authorization } });
    response.writeHead(answer.status, { "Content-Type": "application/json" }).end(await answer.text());
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  try {
    const began = performance.now();
    const { port } = proxy.address() as AddressInfo;
    assert.ok((await connect({ baseUrl: `http://127.0.0.1:${port}` }).stats()).episodes >= 2);
    assert.equal(requests, 2);
    assert.ok(performance.now() - began >= 1000, "the client waits as long as the server asks");
  } finally {
    proxy.close().closeAllConnections();
  }
});

test("only safe requests are repeated after faults", async () => {
  const lost = new TypeError("fetch failed");
  const down = (status: number) => new Response("busy", { status });
  const stats = await meet([lost, down(503)], (client) => client.stats());
  assert.equal(stats.requests, 3);
  assert.ok(!(stats.answer instanceof Error));
  const saved = await meet([lost], (client) => client.episodes.save([BERGEN], { namespace: "lost" }));
  assert.equal(saved.requests, 2);
  for (const fault of [lost, down(502)]) {
    const replaced = await meet([fault], (client) => client.facts.replace("f", { with_text: "Ann lives in Rome." }));
    assert.equal(replaced.requests, 1);
    assert.ok(replaced.answer instanceof KGMemoryError);
  }
  const given = await meet([down(504), down(504)], (client) => client.stats(), 1);
  assert.equal(given.requests, 2);
  assert.equal((given.answer as KGMemoryError).detail, "busy");
});

test("abort ends a call, a pause and a stream", async () => {
  const reason = new Error("enough");
  await assert.rejects(memory.stats({ signal: AbortSignal.abort(reason) }), reason);
  const busy = new Response("", { status: 429, headers: { "Retry-After": "30" } });
  const pausing = await meet([busy], (client) => client.stats({ signal: AbortSignal.timeout(200) }));
  assert.equal((pausing.answer as Error).name, "TimeoutError");
  const controller = new AbortController();
  const wait = async () => {
    for await (const event of memory.events({ signal: controller.signal })) {
      assert.equal(event.name, "counts");
      setTimeout(() => {
        collectGarbage(); // after it, a Request of Node no longer follows its signal
        controller.abort(reason);
      }, 100);
    }
  };
  await assert.rejects(wait, reason);
});

/** Return the events that *client* yields, up to the first fact that is learned. Calls *onFirst* after the first. */
async function listen(client: KGMemory, onFirst?: () => Promise<unknown>): Promise<MemoryEvent[]> {
  const seen: MemoryEvent[] = [];
  for await (const event of client.events()) {
    if (seen.push(event) === 1) await onFirst?.();
    if (event.name === "fact.learned") break;
  }
  return seen;
}

test("events stream as they happen", { timeout: 300_000 }, async () => {
  const client = connect({ namespace: "events" });
  const seen = await listen(client, () => client.episodes.save([OSLO])); // the counts come first: the stream is open
  const [first, learned] = [seen.at(0), seen.at(-1)];
  assert.equal(first?.name, "counts");
  assert.ok(learned?.name === "fact.learned" && learned.data.after?.sentence === "Ann lives in Oslo");
  assert.ok(seen.some((event) => event.name === "episode" && event.data.content === OSLO.content));
});

test("events go on after a broken stream", { timeout: 300_000 }, async () => {
  const first = new Response('id: 1-7\nevent: counts\ndata: {"episodes": 1}\n\n: still here\n\nid: 1-8\nev');
  const asked: (string | null)[] = [];
  const client = connect({
    fetch: (request) => {
      asked.push(request.headers.get("Last-Event-ID"));
      return asked.length > 1 ? fetch(request) : Promise.resolve(first);
    },
  });
  const [counts, ...missed] = await listen(client);
  assert.deepEqual(counts, { id: "1-7", name: "counts", data: { episodes: 1 } });
  assert.equal(missed.at(-1)?.name, "fact.learned");
  assert.deepEqual(asked, [null, "1-7"]);
});

test("a LangGraph graph remembers over threads", async () => {
  const graph = makeGraph(memory, new Repeating({}));
  const ask = async (user_id: string, thread_id: string, content: string) => {
    const state = { messages: [{ role: "user", content }] };
    return (await graph.invoke(state, { configurable: { user_id, thread_id } })).messages.at(-1)?.text;
  };
  await ask("eve", "monday", "I live in Lima.");
  while ((await memory.stats({ namespace: "eve" })).waiting > 0) await delay(100);
  assert.match((await ask("eve", "tuesday", "Where do I live?")) ?? "", /lives in Lima/);
  assert.doesNotMatch((await ask("fay", "tuesday", "Where do I live?")) ?? "", /Lima/);
});

test("generated types and the version fit the server", async () => {
  assert.ok((await readFile(TARGET, "utf8")) === (await generate(server.baseUrl)), "run `npm run generate`");
  const { version } = JSON.parse(await readFile("package.json", "utf8"));
  const minor = /\d+\.\d+\./;
  assert.equal(version.match(minor)?.[0], server.version.match(minor)?.[0], "set the minor version of kg-memory");
});
