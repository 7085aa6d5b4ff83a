// The bar above the time plane: input fields for A and B, and a summary of their differences.

import { get } from "./api.js";
import { fromInput, showDay, toInput } from "./dates.js";
import { button, element, replace, toast } from "./dom.js";
import { t } from "./i18n.js";
import { countChanges, look, now, onLook, pointA } from "./looking.js";
import { set, state, subscribe } from "./store.js";

const KINDS = ["begun", "ended", "retired", "doubtful"];
const DAY = 86400000;
const HINTED = "kg-memory hinted";
const SIGNS = { begun: "+", ended: "−", retired: "×", doubtful: "?" };
const inputs = {};
const counts = {};

export function startPlaneBar(bar, legend) {
  const compare = button(t("compare"), toggleCompare, { title: `${t("compare hint")} (c)` });
  const scale = element("select", { "aria-label": t("scale"), title: t("scale"), onchange: () => set({ scale: scale.value }) },
    ["", "time", "changes"].map((name) => element("option", { value: name }, t(`scale ${name || "auto"}`))));
  const b = point("b", "at2", "believed2");
  const difference = element("div.difference", { role: "group", "aria-label": t("difference") },
    KINDS.map((kind) => { counts[kind] = button("", () => showKind(kind), { title: t(`${kind} hint`) }, `.chip.${kind}`); return counts[kind]; }));
  replace(bar, point("a", "at", "believed"), button(t("now"), toNow, { title: `${t("now hint")} (n)` }),
    button("‹", () => toChange(-1), { title: `${t("previous change")} ([)`, "aria-label": t("previous change") }),
    button("›", () => toChange(1), { title: `${t("next change")} (])`, "aria-label": t("next change") }), compare, scale, b, hint());
  legend.append(difference);
  const update = () => {
    b.hidden = !state.compare;
    difference.hidden = !state.compare;
    compare.setAttribute("aria-pressed", String(state.compare));
    scale.value = state.scale;
    for (const [name, input] of Object.entries(inputs)) if (document.activeElement !== input) input.value = state[name] === null ? t("now") : toInput(state[name]);
    if (!state.compare) return;
    const numbers = countChanges();
    for (const kind of KINDS) counts[kind].textContent = `${SIGNS[kind]}${numbers[kind].toLocaleString()} ${t(kind)}`;
  };
  for (const kind of ["time", "graph", "doubts"]) onLook(kind, update);
  subscribe(["scale"], update);
  update();
}

// Return one sentence on the plane, until it is closed or A is moved for the first time.
function hint() {
  if (localStorage.getItem(HINTED)) return null;
  const box = element("p.plane-hint.row", {}, element("span.soft.small", {}, t("plane hint")), button("×", () => leave(), { "aria-label": t("close") }, ".quiet"));
  const leave = () => { localStorage.setItem(HINTED, "true"); box.remove(); };
  subscribe(["at", "believed"], leave);
  return box;
}

function point(letter, at, believed) {
  return element(`span.point.${letter}`, {}, element("span.letter", { "aria-hidden": "true" }, letter.toUpperCase()),
    entry(letter, at, t("valid on")), entry(letter, believed, t("known on")));
}

function entry(letter, name, label) {
  const input = element("input", {
    type: "text", autocomplete: "off", spellcheck: false, title: t("time hint"), "aria-label": `${letter.toUpperCase()}: ${label}`,
    onchange: () => enter(name, input), onfocus: () => input.select(),
    onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); enter(name, input); } },
  });
  inputs[name] = input;
  return element("label.row", {}, element("span", {}, label), input);
}

// Dates are parsed here; words such as "last March" by the server, as in questions.
async function enter(name, input) {
  const text = input.value.trim();
  if (!text || ["now", t("now")].includes(text.toLowerCase())) return set({ [name]: null }, { push: true });
  let time = fromInput(text);
  if (time === null) {
    try {
      time = (await get("explorer/moment", { text })).at;
    } catch (error) {
      return toast(error.message);
    }
  }
  set({ [name]: time }, { push: true });
  input.value = toInput(time);
}

export function toNow() {
  set({ at: null, believed: null }, { push: true });
}

// Start comparing A with now. If A is now, it moves back by a year, or to the day before the last change if that is earlier.
export function toggleCompare() {
  if (state.compare) set({ compare: false }, { push: true });
  else {
    const isNow = state.at === null && state.believed === null;
    const back = Math.min(pointA().time - 365 * DAY, (findChange(-1) ?? Infinity) - DAY);
    set({ compare: true, at2: null, believed2: null, at: isNow ? back - (back % DAY) : state.at, view: "changes" }, { push: true });
    if (isNow) toast(t("A moved", { day: showDay(state.at) }));
  }
}

function showKind(kind) {
  set({ view: "changes", id: kind, pane: "panel" }, { push: true });
}

// Move A in valid time to where the next fact that passes the filters begins or ends.
export function toChange(step) {
  const at = findChange(step);
  if (at !== null) set({ at }, { push: true });
  else if (step > 0) set({ at: null }, { push: true });
}

function findChange(step) {
  const { graph, passes } = look;
  const { time, believed } = pointA();
  let best = null;
  for (let i = 0; i < graph.from.length; i++) {
    if (!passes[graph.beliefFact[i]] || graph.created[i] > believed || graph.expired[i] <= believed) continue;
    for (const at of [graph.from[i], graph.until[i]]) {
      if (Math.abs(at) >= 8e15 || at > now() || (step > 0 ? at <= time : at >= time)) continue;
      if (best === null || (step > 0 ? at < best : at > best)) best = at;
    }
  }
  return best;
}
