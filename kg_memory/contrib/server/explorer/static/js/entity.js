// The card of an entity: its summary, swim lanes, facts, messages, and decisions on its identity.

import { read, readAll } from "./api.js";
import { showMinute } from "./dates.js";
import { button, element } from "./dom.js";
import { count, t } from "./i18n.js";
import { look, onLook } from "./looking.js";
import { centre } from "./graph.js";
import { openForget } from "./forget.js";
import { openMerge, openSplit, undoDecision } from "./identities.js";
import { drawLanes } from "./lanes.js";
import { entityDot, factLines, message, section } from "./pieces.js";
import { set, state } from "./store.js";

let lanes = null;
let resting = 0;
let listening = false;

export async function showEntity() {
  const id = state.id;
  const place = look.graph.entityPlace.get(id);
  const [card, decisions] = await Promise.all([read(`entities/${encodeURIComponent(id)}`, { limit: 12 }), decisionsAbout(id)]);
  const { entity } = card;
  lanes = place === undefined ? null : drawLanes(place);
  listen(place);
  return [
    element("div.title", {},
      element("div.row", {}, place !== undefined && entityDot(place), element("h2.grow", {}, entity.name), element("span.chip", {}, entity.type)),
      entity.aliases.length > 1 && element("p.faint.small", {}, t("also called", { names: entity.aliases.filter((name) => name !== entity.name).join(", ") })),
      entity.summary && element("p.soft", {}, entity.summary)),
    element("div.actions", {},
      button(t("show in graph"), () => { set({ pane: "graph" }); centre(place); }, { disabled: place === undefined }),
      button(state.focus === id ? t("leave neighbourhood") : t("neighbourhood"), () => toggleFocus(id), { "aria-pressed": String(state.focus === id) }),
      button(t("merge…"), () => openMerge(place, entity)), button(t("split…"), () => openSplit(place, entity)),
      button(t("forget…"), () => openForget({ entity: id }, entity.name), {}, ".danger")),
    lanes && section(t("over time"), lanes),
    decisions.length > 0 && section(t("identity"), decisions.map(showDecision)),
    place !== undefined && factsNow(place),
    card.communities.length > 0 && section(t("communities"), card.communities.map((community) => element("p", {}, element("strong", {}, community.name), community.summary && element("span.soft", {}, ` — ${community.summary}`)))),
    card.episodes.length > 0 && section(t("mentioned in"), element("div.stack", {}, card.episodes.map((episode) => message(episode)))),
  ].filter(Boolean);
}

export function toggleFocus(id) {
  set({ focus: state.focus === id ? "" : id, steps: 1 }, { push: true });
}

function factsNow(place) {
  const { graph, atA } = look;
  const facts = [...graph.factsOf.of(place)];
  const holding = facts.filter((fact) => atA[fact] === 1);
  const rest = facts.filter((fact) => atA[fact] !== 1);
  return element("section", {}, element("h3", {}, t("so at A"), element("span", {}, holding.length)), factLines(holding, { most: 60 }),
    rest.length > 0 && element("details", {}, element("summary", {}, t("not so then", { facts: count("facts", rest.length) })), factLines(rest, { most: 200 })));
}

// Redraw the lanes when A or B moves, because they show marks for both.
function listen(place) {
  if (listening) return;
  listening = true;
  onLook("time", () => {
    clearTimeout(resting);
    resting = setTimeout(() => {
      const now = look.graph.entityPlace.get(state.id);
      if (state.view !== "entity" || !lanes?.isConnected || now === undefined) return;
      const fresh = drawLanes(now);
      lanes.replaceWith(fresh);
      lanes = fresh;
    }, 60);
  });
}

async function decisionsAbout(id) {
  const [decided, doubts] = await Promise.all([readAll("identities", {}, 1000), readAll("identities/waiting", {}, 200)]);
  return [...doubts, ...decided].filter((one) => one.entity.id === id || one.second?.id === id);
}

function showDecision(decision) {
  const words = t(`identity ${decision.kind} ${decision.state}`, { first: decision.entity.name, second: decision.second?.name ?? "?", facts: count("facts", decision.facts) });
  return element("div.verdict", {}, element("p", {}, words),
    decision.by && element("p.faint.small", {}, t("by at", { by: decision.by, at: showMinute(decision.at) }), decision.reason && `: ${decision.reason}`),
    decision.state === "done" || decision.state === "apart" ? element("div", {}, button(t("undo"), () => undoDecision(decision))) : null);
}

