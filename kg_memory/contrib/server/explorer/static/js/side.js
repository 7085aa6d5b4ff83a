// The left side: a list of entities, and the filters.

import { afterFrame, arrowKeys, button, element, replace } from "./dom.js";
import { t } from "./i18n.js";
import { anyFilter, look, onLook } from "./looking.js";
import { centre, wordsOf } from "./graph.js";
import { entityDot, openEntity } from "./pieces.js";
import { set, state, subscribe } from "./store.js";
import { predicateHues, typeVariable } from "./theme.js";

const KINDS = ["state", "event", "plan"];
const MOST = 150;
let words = "";
let side = null;
let list = null;

export function startSide(node) {
  side = node;
  onLook("graph", () => afterFrame(draw));
  let waiting = 0;
  onLook("time", () => { clearTimeout(waiting); waiting = setTimeout(drawEntities, 200); });
  subscribe(["types", "predicates", "kinds", "speaker", "thread", "source", "trust", "confidence", "unreviewed"], draw);
  subscribe(["view", "id"], drawEntities);
}

function draw() {
  const { graph } = look;
  const active = document.activeElement;
  const focused = side.contains(active) ? active.dataset.control : null;
  const find = element("input", { type: "search", value: words, placeholder: t("find entity"), "aria-label": t("find entity"), data: { control: "find" }, oninput: () => { words = find.value; drawEntities(); } });
  list = arrowKeys(element("div.entities"), "button");
  replace(side,
    element("section", {}, button(t("clear filters"), clearFilters, { disabled: !anyFilter() })),
    element("section", {}, element("h2", {}, t("all entities"), element("span", {}, graph.entities.id.length.toLocaleString())), find, list),
    types(graph), predicates(graph), element("section", {}, heading("kinds", "kinds of facts"), KINDS.map((kind) => toggle("kinds", kind, t(`kind ${kind}`), ".flat")),
      element("label.filter.flat", {}, element("input", { type: "checkbox", checked: state.unreviewed, data: { control: "unreviewed" }, onchange: (event) => set({ unreviewed: event.target.checked }) }), element("span", {}, t("what waits for review"))),
      slider("confidence"), slider("trust")),
    element("section", {}, element("h2", {}, t("stated by")), choice("speaker"), choice("thread"), choice("source")));
  drawEntities();
  if (focused) side.querySelector(`[data-control="${CSS.escape(focused)}"]`)?.focus();
}

export function clearFilters() {
  set({ types: [], predicates: [], kinds: [], speaker: "", thread: "", source: "", trust: 0, confidence: 0, unreviewed: true, focus: "" }, { push: true });
}

function types(graph) {
  const counts = new Uint32Array(graph.types.length);
  for (const type of graph.entityType) counts[type]++;
  const ranked = [...counts.keys()].sort((a, b) => counts[b] - counts[a]);
  return element("section", {}, heading("types"), ranked.map((place) => toggle("types", graph.types[place], graph.types[place], "",
    element("span.dot", { style: { background: typeVariable(graph.types, place) } }), counts[place])));
}

function predicates(graph) {
  const { hues, counts, ranked } = predicateHues(graph);
  const rows = ranked.map((place) => toggle("predicates", graph.predicates[place], wordsOf(graph.predicates[place]), "",
    element("span.dash", { style: { background: `var(--predicate-${hues[place]})` } }), counts[place]));
  return element("section", {}, heading("predicates"), rows.slice(0, 8),
    rows.length > 8 && element("details", { open: ranked.slice(8).some((place) => state.predicates.includes(graph.predicates[place])) }, element("summary.small", {}, t("and more", { count: rows.length - 8 })), rows.slice(8, 80)));
}

// Return the heading of checkboxes, with a button that checks all if some are not.
function heading(name, words = name) {
  return element("h2", {}, t(words), state[name].length > 0 && button(t("all"), () => set({ [name]: [] }), {}, ".link"));
}

// Return all values of a filter.
function valuesOf(name) {
  return name === "kinds" ? KINDS : [...look.graph[name]];
}

// Return a checkbox that shows or hides the items with a name, and a button that hides all others.
function toggle(name, value, label, kind, sign = null, number = null) {
  const input = element("input", { type: "checkbox", checked: !state[name].includes(value), data: { control: `${name} ${value}` }, onchange: () => set({ [name]: input.checked ? state[name].filter((one) => one !== value) : [...state[name], value] }) });
  const only = button(t("only"), () => set({ [name]: valuesOf(name).filter((one) => one !== value) }), { "aria-label": t("only name", { name: label }) }, ".link.on-hover");
  return element("div.filter-row", {}, element(`label.filter${kind}`, {}, input, sign, element("span.ellipsis", {}, label), number !== null && element("span.number", {}, number.toLocaleString())), only);
}

function slider(name) {
  const shown = element("span.number.faint.small", {}, state[name].toFixed(1));
  const input = element("input", { type: "range", min: 0, max: 1, step: 0.1, value: state[name], data: { control: name }, "aria-label": t(`least ${name}`), oninput: () => { shown.textContent = Number(input.value).toFixed(1); set({ [name]: Number(input.value) }); } });
  return element("label.field", {}, element("span.soft", {}, t(name), " ≥ ", shown), input);
}

function choice(name) {
  const values = [...new Set(look.graph.sources.map((source) => source[name] ?? "").filter(Boolean))].sort();
  const select = element("select", { "aria-label": t(name), data: { control: name }, onchange: () => set({ [name]: select.value }) },
    element("option", { value: "" }, t("all")), values.slice(0, 500).map((value) => element("option", { value, selected: value === state[name] }, value)));
  return element("label.field", {}, element("span.soft", {}, t(name)), select);
}

function drawEntities() {
  if (!list) return;
  const { graph, states } = look;
  const wanted = words.trim().toLowerCase();
  const ranked = [];
  for (let place = 0; place < graph.entities.id.length; place++) if (!wanted || graph.entities.name[place].toLowerCase().includes(wanted)) ranked.push(place);
  ranked.sort((a, b) => graph.mentions[b] - graph.mentions[a] || a - b);
  replace(list, ranked.slice(0, MOST).map((place) => {
    const id = graph.entities.id[place];
    const shown = graph.factsOf.of(place).reduce((sum, fact) => sum + (states[fact] ? 1 : 0), 0);
    return element(shown ? "button" : "button.absent", { type: "button", "aria-current": String(state.view === "entity" && state.id === id), title: graph.name(place), data: { entity: id }, onclick: () => { openEntity(id); centre(place); } },
      entityDot(place), element("span.ellipsis", {}, graph.name(place)), element("span.number", { title: t("facts shown") }, shown));
  }), ranked.length > MOST && element("p.faint.small", {}, t("and more", { count: (ranked.length - MOST).toLocaleString() })));
}
