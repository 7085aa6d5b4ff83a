// Request the graph of the namespace in the URL. This module imports nothing, so it runs before the others have loaded.

export const ROOT = new URL("..", document.baseURI).pathname;
// The API key is stored under this name in this tab only, never in a link.
export const KEY = "kg-memory key";

export const columnsPath = (ns) => `v1/namespaces/${encodeURIComponent(ns)}/explorer/columns`;

const ns = new URLSearchParams(location.hash.slice(1)).get("ns");
// The result is null if the graph cannot be read yet, as without a key: it is then requested again later.
export const early = { ns, answer: ns ? ask().catch(() => null) : null };

async function ask() {
  const key = sessionStorage.getItem(KEY);
  const answer = await fetch(ROOT + columnsPath(ns), { credentials: "omit", headers: key ? { Authorization: `Bearer ${key}` } : {} });
  return answer.ok ? new Response(await answer.arrayBuffer(), { headers: answer.headers }) : null; // the whole body, before anything is drawn
}
