// Ask for the graph that the address names. This module imports nothing, so it runs before the others are there.

export const ROOT = new URL("..", document.baseURI).pathname;
// Under this name the key lies in this tab only, and in no link.
export const KEY = "kg-memory key";

export const columnsPath = (ns) => `v1/namespaces/${encodeURIComponent(ns)}/explorer/columns`;

const ns = new URLSearchParams(location.hash.slice(1)).get("ns");
// The answer is null where the graph cannot be read yet, as without a key: then it is read as any other.
export const early = { ns, answer: ns ? ask().catch(() => null) : null };

async function ask() {
  const key = sessionStorage.getItem(KEY);
  const answer = await fetch(ROOT + columnsPath(ns), { credentials: "omit", headers: key ? { Authorization: `Bearer ${key}` } : {} });
  return answer.ok ? new Response(await answer.arrayBuffer(), { headers: answer.headers }) : null; // all of it, at once
}
