// The panel of a fact: its sources, what ended it, its premises and consequences, and its history on both clocks.

import { read } from "./api.js";
import { showMinute, showPeriod, showTime } from "./dates.js";
import { button, element } from "./dom.js";
import { count, t } from "./i18n.js";
import { look, onLook } from "./looking.js";
import { openCorrect } from "./correct.js";
import { forgettable, openForget } from "./forget.js";
import { centre, lightUp, wordsOf } from "./graph.js";
import { drawHistory } from "./history.js";
import { apiFactLine, chips, entityLink, factLines, isQuote, message, quoteOf, section } from "./pieces.js";
import { showVerdict } from "./review.js";
import { set, state } from "./store.js";

const MOST_MESSAGES = 8;
let clocks = null; // the history, redrawn when A moves
onLook("time", () => {
  const place = look.graph.factPlace.get(state.id);
  if (state.view !== "fact" || !clocks?.isConnected || place === undefined) return;
  const fresh = history(place);
  clocks.replaceWith(fresh);
  clocks = fresh;
});

export async function showFact() {
  const id = state.id;
  const { graph } = look;
  const place = graph.factPlace.get(id);
  const why = await read(`facts/${encodeURIComponent(id)}/explain`);
  const fact = why.fact ?? why.evolution.find((one) => one.id === id) ?? null;
  const episodes = await readEpisodes(why.sources);
  return [
    head(fact, place, id),
    fact && element("div.actions", {},
      place !== undefined && button(t("show in graph"), () => show(place)),
      button(t("correct…"), () => openCorrect(fact)),
      button(t("forget…"), () => openForget({ fact: id }, fact.sentence), {}, ".danger")),
    fact && measures(fact),
    section(t("said in"), why.sources.length ? element("div.stack", {}, why.sources.slice(0, MOST_MESSAGES).map((source) => quoted(source, episodes))) : element("p.faint", {}, t("no source")),
      why.sources.length > MOST_MESSAGES && element("p.faint.small", {}, t("and more", { count: why.sources.length - MOST_MESSAGES }))),
    endings(fact, why),
    why.verdicts.length > 0 && section(t("verdicts"), element("div.stack", {}, why.verdicts.map((verdict) => showVerdict(verdict, id)))),
    grounds(place, fact),
    (why.consequences.length > 0 || (place !== undefined && graph.restingOn(place).length > 0)) && section(t("what rests on it"),
      element("ul", {}, why.consequences.map((one) => element("li", {}, apiFactLine(one.fact, one.fact.doubtful_since ? element("span.chip.doubtful", {}, t("doubtful")) : count("steps|", one.path.length)))))),
    place !== undefined && (clocks = history(place)),
  ].filter(Boolean);
}

function history(place) {
  return section(t("both clocks"), element("p.soft.small", {}, t(look.atA[place] === 1 ? "valid at A" : "not valid at A")), drawHistory(place));
}

function head(fact, place, id) {
  if (!fact) {
    const { graph } = look;
    const words = place === undefined ? id : [graph.name(graph.subject[place]), ` ${wordsOf(graph.predicates[graph.predicate[place]])} `, graph.facts.object[place].map((one) => graph.name(one)).join(", ")];
    return element("div.title", {}, element("h2", {}, words), element("div.row", {}, element("span.chip.retired", {}, t("not believed any more"))));
  }
  if (isQuote(fact)) return element("div.title", {}, element("h2", {}, t("only said")), element("p.soft", {}, t("only said hint")));
  const { graph } = look;
  return element("div.title", {}, element("h2", {}, fact.sentence), element("p.soft", {}, showPeriod(fact)), chips(fact),
    place !== undefined && element("p.small", {}, entityLink(graph.subject[place]), element("span.predicate", {}, ` ${wordsOf(fact.predicate)} `), graph.facts.object[place].map((one, number) => [number ? ", " : "", entityLink(one)])));
}

function measures(fact) {
  const meter = (name, value, hint) => element("div.meter", { title: hint }, element("span.soft", {}, name), element("div.track", {}, element("i", { style: { "--part": String(value ?? 0) } })),
    element("span.number", {}, value === null ? "–" : value.toFixed(2)));
  return element("div", {}, meter(t("confidence"), fact.confidence, t("confidence hint")), meter(t("support"), fact.support, t("support hint")), meter(t("trust"), fact.trust, t("trust hint")),
    element("p.faint.small", {}, t("voices", { voices: fact.voices }), " · ", t("learned at", { at: showMinute(fact.created_at) })));
}

async function readEpisodes(sources) {
  const ids = [...new Set(sources.slice(0, MOST_MESSAGES).map((source) => source.episode))];
  const read_ = await Promise.all(ids.map((id) => read(`episodes/${encodeURIComponent(id)}`).catch(() => null)));
  return new Map(ids.map((id, number) => [id, read_[number]]));
}

function quoted(source, episodes) {
  const episode = episodes.get(source.episode);
  return forgettable(episode ? message(episode, source) : quoteOf(source), source.episode);
}

// Show the facts that superseded the fact, with their messages.
function endings(fact, why) {
  if (!fact?.invalid_at) return null;
  const enders = why.evolution.filter((one) => fact.superseded_by.includes(one.id));
  const own = why.sources.filter((source) => Date.parse(source.at) >= Date.parse(fact.invalid_at) && !enders.length);
  return section(t("ended by"),
    element("p.soft", {}, t("ended on", { day: showTime(fact.invalid_at, fact.end_precision) })),
    enders.map((one) => element("div.verdict", {}, apiFactLine(one), one.sources.slice(0, 2).map(quoteOf))),
    own.slice(-1).map(quoteOf),
    !enders.length && !own.length && element("p.small.faint", {}, t("end told elsewhere")));
}

// Show the premises of the fact, and the chain to the one that makes it doubtful.
function grounds(place, fact) {
  const premises = place === undefined ? [] : look.graph.premisesOf(place);
  if (!premises.length) return null;
  return section(t("rests on"), factLines(premises),
    fact?.doubtful_since && element("div.verdict", {}, element("p", {}, element("span.chip.doubtful", {}, t("doubtful since", { day: showTime(fact.doubtful_since, fact.doubtful_precision) }))),
      element("p.small", {}, t("because"), " ", fact.doubtful_because.map((premise) => premise.sentence).join(" → "), fact.doubtful_because.at(-1)?.refuted ? ` (${t("refuted")})` : ` (${t("ended")})`)));
}

function show(place) {
  const { graph } = look;
  set({ pane: "graph" });
  centre(graph.subject[place]);
  lightUp([graph.subject[place], ...graph.facts.object[place]].filter((one) => one >= 0), [...graph.links.ofFact.of(place)]);
}
