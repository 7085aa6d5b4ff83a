// The card of an entity: its summary, swim lanes, facts, messages, and decisions on its identity.

import { read, readAll } from "./api.js";
import { showMinute, showPeriod } from "./dates.js";
import { button, element } from "./dom.js";
import { count, t } from "./i18n.js";
import { look, onLook, pointA } from "./looking.js";
import { centre, wordsOf } from "./graph.js";
import { forgettable, openForget } from "./forget.js";
import { openMerge, openSplit, undoDecision } from "./identities.js";
import { drawLanes } from "./lanes.js";
import { entityDot, factLine, message, section } from "./pieces.js";
import { set, state } from "./store.js";

const MOST_MESSAGES = 12;
const MOST = 12; // facts of one predicate that are shown at once
let lanes = null;
let facts = null;
let periods = new Map(); // of the card's facts as now known, which the columns have without their precision
let resting = 0;
let listening = false;

export async function showEntity() {
  const id = state.id;
  const place = look.graph.entityPlace.get(id);
  const [card, decisions] = await Promise.all([read(`entities/${encodeURIComponent(id)}`, { limit: 60 }), decisionsAbout(id)]);
  const { entity } = card;
  const known = card.episodes.filter((episode) => Date.parse(episode.created_at) <= pointA().believed);
  const others = entity.aliases.filter((name) => name !== entity.name);
  periods = new Map(card.facts.map((fact) => [fact.id, showPeriod(fact)]));
  lanes = place === undefined ? null : drawLanes(place);
  facts = place === undefined ? null : factsByPredicate(place);
  listen(place);
  return [
    element("div.title", {},
      element("div.row", {}, place !== undefined && entityDot(place), element("h2.grow", {}, entity.name), element("span.chip", {}, entity.type)),
      others.length > 0 && element("p.faint.small", {}, t("also called", { names: others.join(", ") }))),
    element("div.actions", {},
      button(t("show in graph"), () => { set({ pane: "graph" }); centre(place); }, { disabled: place === undefined }),
      button(state.focus === id ? t("leave neighbourhood") : t("neighbourhood"), () => toggleFocus(id), { "aria-pressed": String(state.focus === id) })),
    facts,
    lanes && section(t("over time"), lanes),
    entity.summary && !isRepeated(entity.summary, card) && section(t("summary"), element("p", {}, entity.summary)),
    decisions.length > 0 && section(t("identity"), decisions.map(showDecision)),
    card.communities.length > 0 && section(t("communities"), card.communities.map((community) => element("p", {}, element("strong", {}, community.name), community.summary && element("span.soft", {}, ` — ${community.summary}`)))),
    element("div.actions", {}, button(t("merge…"), () => openMerge(place, entity)), button(t("split…"), () => openSplit(place, entity)), button(t("forget…"), () => openForget({ entity: id }, entity.name), {}, ".danger")),
    known.length > 0 && section(t("mentioned in"), element("div.stack", {}, known.slice(0, MOST_MESSAGES).map((episode) => forgettable(message(episode), episode.id, ".on-hover")))),
  ].filter(Boolean);
}

export function toggleFocus(id) {
  set({ focus: state.focus === id ? "" : id, steps: 1, pane: "graph" }, { push: true });
}

// List the facts known at A by predicate: what is valid at A, then what is valid at other times.
function factsByPredicate(place) {
  const { graph, atA } = look;
  const groups = new Map();
  const { believed } = pointA();
  const facts = [...graph.factsOf.of(place)].filter((fact) => graph.beliefs.of(fact).some((belief) => graph.created[belief] <= believed)).sort((a, b) => Number(atA[b] === 1) - Number(atA[a] === 1));
  for (const fact of facts) {
    const name = wordsOf(graph.predicates[graph.predicate[fact]]);
    if (groups.has(name)) groups.get(name).push(fact);
    else groups.set(name, [fact]);
  }
  const line = (fact) => element("li", {}, factLine(fact, { about: place, kind: atA[fact] === 1 ? "" : "over", when: state.believed === null ? periods.get(graph.facts.id[fact]) : undefined }));
  return element("section", {}, element("h3", {}, t("found facts"), facts.length > 0 && element("span", {}, t("facts at A", { valid: facts.filter((fact) => atA[fact] === 1).length, all: facts.length }))),
    facts.length === 0 && element("p.faint", {}, t(graph.factsOf.of(place).length ? "no facts known" : "no facts")),
    [...groups].map(([name, listed]) => element("div.predicate-row", {}, element("span.soft", { "aria-hidden": "true" }, name), element("ul", { "aria-label": name }, listed.slice(0, MOST).map(line),
      listed.length > MOST && element("li", {}, element("details", {}, element("summary", {}, t("and more", { count: listed.length - MOST })), element("ul", {}, listed.slice(MOST, 200).map(line))))))));
}

// Return whether a summary only repeats facts and messages of the card, as the summaries of the offline reader do.
function isRepeated(summary, card) {
  const stated = [...card.facts.map((fact) => fact.sentence), ...card.episodes.map((episode) => episode.content)].sort((a, b) => b.length - a.length);
  const rest = stated.reduce((left, text) => left.replaceAll(text.replace(/[.。!！]$/u, ""), ""), summary);
  return !/\p{L}/u.test(rest.replaceAll(/\([^)]*\)|（[^）]*）/gu, ""));
}

// Redraw the facts and the lanes when A or B moves.
function listen(place) {
  if (listening) return;
  listening = true;
  onLook("time", () => {
    clearTimeout(resting);
    resting = setTimeout(() => {
      const now = look.graph.entityPlace.get(state.id);
      if (state.view !== "entity" || !lanes?.isConnected || now === undefined) return;
      const fresh = [factsByPredicate(now), drawLanes(now)];
      facts.replaceWith(fresh[0]);
      lanes.replaceWith(fresh[1]);
      [facts, lanes] = fresh;
    }, 60);
  });
}

async function decisionsAbout(id) {
  const [decided, doubts] = await Promise.all([readAll("identities", {}, 1000), readAll("identities/waiting", {}, 200)]);
  return [...doubts, ...decided].filter((one) => one.entity.id === id || one.second?.id === id);
}

export function showDecision(decision) {
  const words = t(`identity ${decision.kind} ${decision.state}`, { first: decision.entity.name, second: decision.second?.name ?? "?", facts: count("facts", decision.facts) });
  return element("div.verdict", {}, element("p", {}, words),
    decision.by && element("p.faint.small", {}, t("by at", { by: decision.by, at: showMinute(decision.at) }), decision.reason && `: ${decision.reason}`),
    decision.state === "done" || decision.state === "apart" ? element("div", {}, button(t("undo"), () => undoDecision(decision))) : null);
}

