// Search: the results that an agent gets, the parts of each score, and highlighted paths in the graph.

import { post } from "./api.js";
import { button, element } from "./dom.js";
import { t } from "./i18n.js";
import { lightUp } from "./graph.js";
import { look, pointA } from "./looking.js";
import { showPeriod } from "./dates.js";
import { apiFactLine, isQuote, message, openEntity, openFact, quoteOf, section } from "./pieces.js";
import { set, state } from "./store.js";

export async function showSearch() {
  if (!state.q.trim()) return [element("p.soft", {}, t("search intro"))];
  const a = pointA();
  const asked = { question: state.q, explain: true, limit: 12 };
  if (state.at !== null) asked.as_of = new Date(a.time).toISOString();
  if (state.believed !== null) asked.believed_at = new Date(a.believed).toISOString();
  const context = await post("context", asked);
  const { results } = context;
  const why = new Map(results.explanations.map((one) => [`${one.kind} ${one.id}`, one]));
  const explain = (kind, id) => why.get(`${kind} ${id}`) ?? [...why.values()].find((one) => one.id === id);
  light(results);
  return [
    answer(results),
    element("div.title", {}, answerLine(results), results.time && element("p.faint.small", {}, results.time.reading, " ", results.time.words && results.time.since && state.at === null && button(t("show then"), () => set({ at: Date.parse(results.time.since) }, { push: true }), {}, ".link"))),
    context.text && element("details", { open: true }, element("summary", {}, t("what an agent gets", { tokens: context.tokens })), element("pre.context", { tabIndex: 0 }, context.text)),
    list(t("found facts"), results.facts.filter((fact) => !isQuote(fact) || !isShown(fact, results.episodes)), (fact) => [isQuote(fact) ? fact.sources.slice(0, 1).map(quoteOf) : lit(apiFactLine(fact, showPeriod(fact)), [fact.id], []), parts(explain("facts", fact.id))]),
    list(t("found entities"), results.entities, (entity) => [lit(element("button.fact-line", { type: "button", onclick: () => openEntity(entity.id) }, element("span", {}, entity.name), element("span.when", {}, entity.type)), [], [entity.id]), parts(explain("entities", entity.id))]),
    list(t("found messages"), results.episodes, (episode) => [message(episode), episode.remarks.map((remark) => element("p.small", {}, element("span.chip.ended", {}, t(`remark ${remark.kind}`)), ` ${remark.sentence}`)), parts(explain("episodes", episode.id))]),
    list(t("communities"), results.communities, (community) => [element("p", {}, element("strong", {}, community.name), ` ${community.summary}`), parts(explain("communities", community.id))]),
    leftOut(results),
  ].filter(Boolean);
}

// Return whether the message that a fact quotes is among the episodes.
function isShown(fact, episodes) {
  return fact.sources.some((source) => episodes.some((episode) => episode.id === source.episode));
}

// Show the best fact with its date and source; if it is only a quote, or there is none, the best message.
function answer({ question, answerable, facts: [best], episodes: [said] }) {
  const known = answerable?.value !== "no" && answerable?.value !== "unlikely";
  if (!known || (!best && !said)) return element("div.title", {}, element("h2", {}, question));
  const only = !best || isQuote(best);
  return element("div.answer", {}, element("p.soft.small", {}, question),
    only ? element("h2", {}, t("said about it")) : element("h2", {}, button(best.sentence, () => openFact(best.id), {}, ".link")),
    !only && element("p.soft", {}, showPeriod(best)),
    best ? best.sources.length > 0 && quoteOf(best.sources.at(-1)) : message(said));
}

function answerLine(results) {
  if (!results.answerable) return null;
  const { value, reason } = results.answerable;
  return element("p", {}, element(`span.chip.${value === "yes" ? "begun" : value === "no" ? "ended" : "doubtful"}`, {}, t(`answerable ${value}`)), " ", element("span.soft.small", {}, t("relevance", { relevance: results.relevance.toFixed(2) }), reason ? ` · ${reason}` : ""));
}

function list(title, items, show) {
  return items.length ? section(title, element("ul.lines", {}, items.map((item) => element("li", {}, show(item))))) : null;
}

// Show the retrievers that found a result, and its score after each ranking step.
function parts(why) {
  if (!why) return null;
  const most = Math.max(1e-9, ...why.scores.map(([, score]) => Math.abs(score)));
  return element("details.small", {}, element("summary", {}, [t("rank", { rank: why.rank ?? "–" }), why.hits.length > 0 && ` · ${why.hits.map((hit) => t(`retriever ${hit.retriever}`)).join(", ")}`]),
    why.hits.map((hit) => element("p.small", {}, t("hit", { by: t(`retriever ${hit.retriever}`), rank: hit.rank }))),
    why.scores.length > 0 && element("p.small.faint", {}, t("scores of steps")),
    why.scores.map(([step, score]) => element("div.meter", {}, element("span.soft.ellipsis", { title: step }, step), element("div.track", {}, element("i", { style: { "--part": String(Math.max(0, score) / most) } })), element("span.number", {}, score.toFixed(4)))),
    why.left_out && element("p.faint", {}, why.left_out));
}

function leftOut(results) {
  const out = results.explanations.filter((one) => one.left_out);
  if (!out.length) return null;
  return element("details", {}, element("summary", {}, t("left out", { count: out.length })), element("ul.lines", {}, out.slice(0, 60).map((one) => element("li", {}, element("p", {}, one.text || one.id), element("p.faint.small", {}, one.left_out)))));
}

// Highlight the answer, and a path to it from the entities that the question names, if the search is still shown.
function light(results) {
  if (state.view === "search") lightUp(...findLight(results.facts.slice(0, 1).map((fact) => fact.id), []));
}

function lit(node, facts, entities) {
  const on = () => lightUp(...findLight(facts, entities));
  node.addEventListener("mouseenter", on);
  node.addEventListener("focus", on);
  return node;
}

function findLight(factIds, entityIds) {
  const { graph } = look;
  const named = namedIn(state.q);
  const entities = new Set(named);
  const links = new Set();
  for (const id of entityIds) if (graph.entityPlace.has(id)) entities.add(graph.entityPlace.get(id));
  for (const id of factIds) {
    const fact = graph.factPlace.get(id);
    if (fact === undefined) continue;
    const ends = [graph.subject[fact], ...graph.facts.object[fact]].filter((place) => place >= 0);
    ends.forEach((place) => entities.add(place));
    graph.links.ofFact.of(fact).forEach((link) => links.add(link));
    for (const [entity, link] of findWay(named, ends)) { entities.add(entity); links.add(link); }
  }
  return [[...entities], [...links]];
}

function namedIn(question) {
  const words = question.toLowerCase();
  const { graph } = look;
  const named = [];
  for (let place = 0; place < graph.entities.id.length && named.length < 4; place++) {
    const name = graph.entities.name[place].toLowerCase();
    if (name.length > 1 && words.includes(name)) named.push(place);
  }
  return named;
}

// Return the shortest path from `starts` to `ends` along facts that hold at A, of at most four steps.
function findWay(starts, ends) {
  const { graph, atA } = look;
  const goals = new Set(ends);
  if (!starts.length || starts.some((place) => goals.has(place))) return [];
  const came = new Map(starts.map((place) => [place, null]));
  let edge = starts;
  for (let step = 0; step < 4 && edge.length; step++) {
    const next = [];
    for (const entity of edge) {
      for (const fact of graph.factsOf.of(entity)) {
        if (atA[fact] !== 1) continue;
        for (const link of graph.links.ofFact.of(fact)) {
          const other = graph.links.source[link] === entity ? graph.links.target[link] : graph.links.source[link];
          if (came.has(other)) continue;
          came.set(other, [entity, link]);
          if (goals.has(other)) return retrace(came, other);
          next.push(other);
        }
      }
    }
    edge = next;
  }
  return [];
}

function retrace(came, end) {
  const way = [];
  for (let at = end; came.get(at); [at] = came.get(at)) way.push([at, came.get(at)[1]]);
  return way;
}
