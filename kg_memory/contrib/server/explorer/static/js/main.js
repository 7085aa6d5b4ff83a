// Starts the parts of the page and reads the graph.

import { Problem, onKeyNeeded, post } from "./api.js";
import { forgetKept, readGraph } from "./data.js";
import { showDay } from "./dates.js";
import { afterFrame, button, element, iconButton, replace, toast } from "./dom.js";
import { early } from "./early.js";
import { choose, lightUp, startGraph, zoom } from "./graph.js";
import { count, t } from "./i18n.js";
import { startKeyboard } from "./keyboard.js";
import { listen, loadStory } from "./live.js";
import { EMPTY, look, onLook, setGraph } from "./looking.js";
import { drawTabs, show, startPanel } from "./panel.js";
import { openEntity, openFact } from "./pieces.js";
import { startPlane } from "./plane.js";
import { startPlaneBar } from "./plane-bar.js";
import { onRefresh } from "./refresh.js";
import { act, countWaiting } from "./review.js";
import { clearFilters, startSide } from "./side.js";
import { notify, readLink, set, state, subscribe } from "./store.js";
import { startTheme } from "./theme.js";
import { askForKey, listNamespaces, startTop } from "./top.js";

readLink();
const $ = (id) => document.getElementById(id);
const applyTheme = startTheme();
const { names, counts } = startTop($("top"), applyTheme);
onKeyNeeded(askForKey);
const note = element("div.graph-note");
const shown = element("div.row");
const legend = element("div.row");
const offer = button(t("find communities"), findCommunities, { title: t("find communities hint"), hidden: true }, ".graph-offer");
note.append(shown, legend);
const empty = element("div.empty", { hidden: true });
startFrame();
start();

function startFrame() {
  const stage = element("div.stage", { role: "img", "aria-label": t("graph label") });
  const areas = element("canvas.areas", { "aria-hidden": "true" });
  const toggleAreas = iconButton("areas", t("communities as areas"), () => set({ areas: !state.areas }));
  replace($("graph"), areas, stage, note, element("div.graph-tools", {}, toggleAreas, iconButton("plus", t("zoom in"), () => zoom(1.6)), iconButton("minus", t("zoom out"), () => zoom(1 / 1.6)), iconButton("fit", t("fit"), () => zoom(0))), offer, empty);
  startGraph(stage, areas, {
    entity: (place) => openEntity(look.graph.entities.id[place]),
    near: (place) => set({ focus: look.graph.entities.id[place], view: "entity", id: look.graph.entities.id[place], steps: 1 }, { push: true }),
    link: openLink,
  });
  const bar = element("div.plane-bar");
  const box = element("div.plane-box");
  replace($("plane"), bar, box);
  startPlaneBar(bar, legend);
  startPlane(box);
  $("side").setAttribute("aria-label", t("pane filters"));
  $("panel").setAttribute("aria-label", t("pane details"));
  startSide($("side"));
  startPanel($("panel"));
  startKeyboard();
  startPanes();
  subscribe(["areas"], () => { toggleAreas.setAttribute("aria-pressed", String(state.areas)); choose(); });
  toggleAreas.setAttribute("aria-pressed", String(state.areas));
  for (const kind of ["graph", "time"]) onLook(kind, drawNote);
  subscribe(["focus", "steps", "areas"], drawNote);
}

function startPanes() {
  const panes = [["graph", "pane graph"], ["time", "pane time"], ["panel", "pane details"], ["side", "pane filters"]];
  const draw = () => {
    $("frame").dataset.pane = state.pane;
    replace($("panes"), panes.map(([name, words]) => button(t(words), () => set({ pane: name }), { "aria-pressed": String(state.pane === name), data: { pane: name } })));
  };
  subscribe(["pane"], draw);
  draw();
}

function openLink(link) {
  const { graph } = look;
  const facts = graph.links.facts.of(link).filter((fact) => look.states[fact]);
  if (facts.length === 1) openFact(graph.facts.id[facts[0]]);
  else set({ view: "link", id: [graph.links.source[link], graph.links.target[link]].map((place) => graph.entities.id[place]).join(" "), pane: "panel" }, { push: true });
}

// Show notes about the graph: limited to a neighbourhood, or communities not computed yet.
function drawNote() {
  const { atA, graph, passes, states } = look;
  const place = graph.entityPlace.get(state.focus);
  let [number, hidden] = [0, 0];
  for (let fact = 0; fact < states.length; fact++) { // runs while dragging
    if (states[fact]) number++;
    else if (atA[fact] === 1 && !passes[fact]) hidden++;
  }
  replace(shown, element("span", { id: "shown" }, count("facts shown|", number)),
    state.at !== null && element("span.narrow", {}, `A: ${showDay(state.at)}`),
    hidden > 0 && place === undefined && element("span", {}, t("hidden by filters", { count: hidden.toLocaleString() }), " ", button(t("clear filters"), clearFilters, {}, ".link")),
    place !== undefined && element("span", {}, t("near", { name: graph.name(place) }), " ", button("−", () => set({ steps: Math.max(1, state.steps - 1) }), { "aria-label": t("fewer steps"), disabled: state.steps <= 1 }, ".quiet"), count("steps|", state.steps), button("+", () => set({ steps: Math.min(4, state.steps + 1) }), { "aria-label": t("more steps") }, ".quiet"), button(t("leave"), () => set({ focus: "" }, { push: true }), {}, ".link")));
  offer.hidden = !state.areas || !graph.entities.id.length || graph.communities.length > 0;
}

function findCommunities() {
  return act(async () => {
    const { communities } = await post("communities/refresh");
    toast(t("communities found", { communities }));
  });
}

async function start() {
  try {
    if (state.ns) {
      await Promise.all([listNamespaces(names), open(early.ns === state.ns ? early.answer : null)]);
    } else {
      const stored = await listNamespaces(names);
      state.ns = stored[0] ?? "default";
      await listNamespaces(names);
      await open();
    }
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    showEmpty(element("p.error", { role: "alert" }, error.message), button(t("try again"), () => location.reload(), {}, ".primary"));
  }
}

async function open(sent = null) {
  forgetKept();
  setGraph(await readGraph(state.ns, sent));
  invite();
  afterFrame(show);
  await readCounts();
  listen();
}

async function readCounts() {
  const stats = await countWaiting();
  const quotes = stats.facts - look.graph.size;
  counts.textContent = [count("messages", stats.episodes), count("entities", stats.entities), count("facts", stats.facts)].join(" · ");
  if (quotes > 0) counts.append(` (${t("not drawn", { count: quotes.toLocaleString() })})`);
  counts.title = quotes > 0 ? t("not drawn hint") : "";
  drawTabs();
}

// Offer the demo story if the memory is empty.
function invite() {
  if (look.graph.entities.id.length) {
    empty.hidden = true;
    return;
  }
  const load = button(t("load story"), async () => {
    load.disabled = true;
    try {
      await loadStory();
    } catch (error) {
      toast(error.message);
      load.disabled = false;
    }
  }, { id: "load-story" }, ".primary");
  showEmpty(element("h2", {}, t("empty memory", { name: state.ns })), element("p", {}, t("empty intro")), load);
}

function showEmpty(...content) {
  replace(empty, content);
  empty.hidden = false;
}

onRefresh(async () => {
  try {
    const graph = await readGraph(state.ns);
    if (graph) {
      setGraph(graph);
      invite();
    }
    await readCounts();
    if (graph && names.value !== "+" && ![...names.options].some((option) => option.value === state.ns)) await listNamespaces(names);
    if (["review", "fact", "entity", "saved"].includes(state.view)) await show({ keep: true });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
});

subscribe(["ns"], async () => {
  lightUp();
  setGraph(EMPTY);
  try {
    await listNamespaces(names);
    await open();
  } catch (error) {
    showEmpty(element("p.error", { role: "alert" }, error.message));
  }
});

window.addEventListener("hashchange", () => notify(readLink()));
