// The view state. All of it is in the URL after #, so that a link shows the same view.

const START = {
  ns: "", at: null, believed: null, at2: null, believed2: null, compare: false,
  view: "live", id: "", q: "", focus: "", steps: 1,
  types: [], predicates: [], kinds: [], speaker: "", thread: "", source: "", trust: 0, confidence: 0, unreviewed: true,
  areas: true, scale: "", pane: "graph",
};
const TIMES = new Set(["at", "believed", "at2", "believed2"]);
const listeners = [];

export const state = { ...START };

export function subscribe(names, run) {
  listeners.push({ names: new Set(names), run });
}

// Change the view state. With `push`, the browser's back button undoes the change.
export function set(patch, { push = false } = {}) {
  const changed = Object.keys(patch).filter((name) => JSON.stringify(state[name]) !== JSON.stringify(patch[name]));
  if (!changed.length) return;
  Object.assign(state, patch);
  write(push);
  notify(changed);
}

export function notify(changed) {
  for (const { names, run } of listeners) if (changed.some((name) => names.has(name))) run(changed);
}

let writing = 0;

function write(push) {
  if (push) {
    clearTimeout(writing);
    history.pushState(null, "", toLink());
    return;
  }
  clearTimeout(writing); // dragging changes the state many times a second
  writing = setTimeout(() => history.replaceState(null, "", toLink()), 150);
}

export function toLink() {
  const parameters = new URLSearchParams();
  for (const [name, first] of Object.entries(START)) {
    const value = state[name];
    if (JSON.stringify(value) === JSON.stringify(first)) continue;
    parameters.set(name, TIMES.has(name) ? new Date(value).toISOString() : Array.isArray(first) ? JSON.stringify(value) : String(value));
  }
  return `#${parameters}`;
}

export function readLink() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const next = { ...START };
  for (const [name, text] of parameters) if (name in START) next[name] = parse(name, text, START[name]);
  if (!next.ns) next.ns = state.ns;
  const changed = Object.keys(START).filter((name) => JSON.stringify(state[name]) !== JSON.stringify(next[name]));
  Object.assign(state, next);
  return changed;
}

function parse(name, text, first) {
  if (TIMES.has(name)) return Number.isNaN(Date.parse(text)) ? null : Date.parse(text);
  if (typeof first === "boolean") return text === "true";
  if (typeof first === "number") return Number(text) || 0;
  if (!Array.isArray(first)) return text;
  try {
    const list = JSON.parse(text);
    return Array.isArray(list) ? list.filter((item) => typeof item === "string") : first;
  } catch {
    return first;
  }
}

window.addEventListener("popstate", () => notify(readLink()));
