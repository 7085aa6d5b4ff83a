// Requests to the server that this page was loaded from.

import { KEY, ROOT } from "./early.js";
import { t } from "./i18n.js";
import { state } from "./store.js";

let askForKey = async () => null;

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export function onKeyNeeded(ask) {
  askForKey = ask;
}

export const secret = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

export function namespacePath(path, ns = state.ns) {
  return `v1/namespaces/${encodeURIComponent(ns)}/${path}`;
}

export async function request(method, path, { query = {}, body, headers = {}, signal } = {}) {
  const url = new URL(ROOT + path, location.origin);
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  const options = { method, headers: { ...headers }, signal, credentials: "omit" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const key = secret.get();
  if (key) options.headers.Authorization = `Bearer ${key}`;
  let answer;
  try {
    answer = await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, t("unreachable"));
  }
  if (answer.status === 401 && (await askForKey(Boolean(key)))) return request(method, path, { query, body, headers, signal });
  if (!answer.ok && answer.status !== 304) throw new Problem(answer.status, await readProblem(answer));
  return answer;
}

async function readProblem(answer) {
  try {
    return (await answer.json()).detail || answer.statusText;
  } catch {
    return answer.statusText || String(answer.status);
  }
}

export async function get(path, query = {}, options = {}) {
  return (await request("GET", path, { query, ...options })).json();
}

export async function read(path, query = {}, options = {}) {
  return get(namespacePath(path), query, options);
}

export async function post(path, body = {}) {
  return (await request("POST", namespacePath(path), { body })).json();
}

// Return the items of a paged list, at most `most`.
export async function readAll(path, query = {}, most = 1000) {
  const items = [];
  let cursor = null;
  do {
    const page = await read(path, { limit: Math.min(most, 1000), ...query, cursor });
    items.push(...page.items);
    cursor = page.next;
  } while (cursor && items.length < most);
  return items;
}

// Read server-sent events with fetch, because EventSource cannot send an API key. Ends when `signal` is aborted.
export async function follow(path, onEvent, onState, signal) {
  let last = null;
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
      const answer = await request("GET", namespacePath(path), { headers, signal });
      onState(true);
      last = (await readEvents(answer.body, onEvent)) ?? last;
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401 || error.status === 403 || error.status === 404) return;
    }
    onState(false);
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

async function readEvents(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let last = null;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return last;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      last = fields.id ?? last;
      if (fields.event && fields.data) onEvent(fields.event, JSON.parse(fields.data));
    }
  }
}
