// The panel on the right: its tabs, and the view that the URL names.

import { button, element, replace } from "./dom.js";
import { t } from "./i18n.js";
import { look, onLook } from "./looking.js";
import { choose } from "./graph.js";
import { set, state, subscribe } from "./store.js";
import { failure, loading } from "./pieces.js";
import { showChanges } from "./changes.js";
import { showEntity } from "./entity.js";
import { showFact } from "./fact.js";
import { showLink } from "./link.js";
import { showLive } from "./live.js";
import { showReview, waiting } from "./review.js";
import { showSaved } from "./saved.js";
import { showSearch } from "./search.js";

const VIEWS = { live: showLive, changes: showChanges, review: showReview, saved: showSaved, entity: showEntity, fact: showFact, link: showLink, search: showSearch };
const TABS = ["live", "search", "changes", "review", "saved"];
let body = null;
let tabs = null;
let number = 0;

export function startPanel(panel) {
  tabs = element("div.tabs", { role: "tablist", "aria-label": t("views") });
  body = element("div.view", { tabIndex: 0, role: "tabpanel", "aria-label": t("details"), id: "view" });
  replace(panel, element("h2.visually-hidden", {}, t("details")), tabs, body);
  subscribe(["view", "id", "q", "ns"], () => { drawTabs(); show(); choose(); });
  subscribe(["focus"], () => { if (state.view === "entity") show({ keep: true }); });
  onLook("graph", () => { drawTabs(); if (["entity", "link", "changes", "fact", "saved"].includes(state.view)) show({ keep: true }); });
  drawTabs();
}

export function drawTabs() {
  const shown = TABS.includes(state.view) ? TABS : [...TABS, state.view];
  replace(tabs, shown.map((name) => element("button", {
    type: "button", role: "tab", "aria-selected": String(state.view === name), "aria-controls": "view", data: { tab: name }, tabIndex: state.view === name ? 0 : -1,
    onclick: () => set({ view: name, id: TABS.includes(name) ? "" : state.id }, { push: true }), onkeydown: turn,
  }, t(`tab ${name}`), name === "review" && waiting.count > 0 && element("span.count.due", {}, waiting.count))));
}

function turn(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const all = [...tabs.children];
  const next = all[(all.indexOf(event.currentTarget) + step + all.length) % all.length];
  next.click();
  tabs.querySelector('[aria-selected="true"]').focus();
}

// Show the view that the URL names. Data that arrives after the view was left is dropped.
export async function show({ keep = false } = {}) {
  if (!look.graph || !state.ns) return;
  const own = ++number;
  const view = VIEWS[state.view] ?? showLive;
  const isCurrent = () => own === number;
  const place = body.scrollTop;
  if (!keep) replace(body, loading());
  try {
    const content = await view(isCurrent);
    if (!isCurrent()) return;
    replace(body, content);
    body.scrollTop = keep ? place : 0;
  } catch (error) {
    if (isCurrent()) replace(body, failure(error), error.status === 404 && button(t("back"), () => history.back()));
  }
}
