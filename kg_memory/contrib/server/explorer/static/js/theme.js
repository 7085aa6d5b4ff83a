// Light and dark mode, and the style sheet's colours for the graph and the canvases.

const KEPT = "kg-memory theme";
const listeners = [];
let colours = null;

export function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    document.documentElement.dataset.theme = localStorage.getItem(KEPT) ?? (system.matches ? "dark" : "light");
    colours = null;
    for (const run of listeners) run();
  };
  system.addEventListener("change", apply);
  apply();
  return apply;
}

export function toggleTheme(apply) {
  localStorage.setItem(KEPT, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  apply();
}

export function onTheme(run) {
  listeners.push(run);
}

export function colour(name) {
  if (!colours) colours = new Map();
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}

const HUES = ["Person", "Organization", "Place", "Product", "Topic", "Event", "Date"];

// The seven known entity types have fixed colours; other types get colours in their order.
export function typeColour(types, place) {
  return colour(`type-${hueOf(types[place], place)}`);
}

export const typeVariable = (types, place) => `var(--type-${hueOf(types[place], place)})`;

function hueOf(type, place) {
  const own = HUES.indexOf(type);
  if (own >= 0) return own;
  return type === "Entity" ? 7 : place % 8;
}

const given = new Map(); // the colours of predicates, which they keep while the page is open

// Give each of the seven most frequent predicates a colour.
export function predicateHues(graph) {
  const counts = new Uint32Array(graph.predicates.length);
  for (const predicate of graph.predicate) counts[predicate]++;
  const ranked = [...counts.keys()].sort((a, b) => counts[b] - counts[a]);
  const hues = new Uint8Array(counts.length).fill(7);
  const names = ranked.slice(0, 7).map((place) => graph.predicates[place]);
  for (const name of given.keys()) if (!names.includes(name)) given.delete(name);
  for (const name of names.sort()) if (!given.has(name)) given.set(name, [0, 1, 2, 3, 4, 5, 6].find((hue) => ![...given.values()].includes(hue)));
  ranked.slice(0, 7).forEach((place) => { hues[place] = given.get(graph.predicates[place]); });
  return { hues, counts, ranked };
}
