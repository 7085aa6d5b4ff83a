// Elements that several views share: fact lines, messages with quotes, chips, entity links.

import { showMinute, showPeriod, showSpan } from "./dates.js";
import { append, button, element } from "./dom.js";
import { count, t } from "./i18n.js";
import { look, pointA } from "./looking.js";
import { lightUp, wordsOf } from "./graph.js";
import { set, state } from "./store.js";
import { typeVariable } from "./theme.js";

export const openFact = (id) => set({ view: "fact", id, pane: "panel" }, { push: true });
export const openEntity = (id) => set({ view: "entity", id, pane: "panel" }, { push: true });

export function entityLink(place) {
  const { graph } = look;
  if (place < 0) return element("span.faint", {}, "?");
  return button(graph.name(place), () => openEntity(graph.entities.id[place]), {}, ".link");
}

export function entityDot(place) {
  const { graph } = look;
  return element("span.dot", { style: { background: typeVariable(graph.types, graph.entityType[place]) }, "aria-hidden": "true" });
}

// Return a fact from the columns as text: subject, predicate, objects; of a fact about the entity `about`, the objects.
// The columns have no sentence.
export function factWords(fact, { about = -1 } = {}) {
  const { graph } = look;
  const objects = graph.facts.object[fact].map((place) => graph.name(place)).join(", ");
  if (objects && graph.subject[fact] === about) return objects;
  return [graph.name(graph.subject[fact]), element("span.predicate", {}, ` ${wordsOf(graph.predicates[graph.predicate[fact]])} `), objects];
}

export function spanOf(fact, point = pointA()) {
  const { graph } = look;
  const belief = graph.beliefAt(fact, point.time, point.believed);
  if (belief < 0) return "";
  return showSpan(graph.valid[belief], graph.until[belief], graph.from[belief]);
}

// Return a line for a fact from the columns. A click opens it; hovering highlights it in the graph.
export function factLine(fact, options = {}) {
  const { graph } = look;
  const id = graph.facts.id[fact];
  const light = () => lightUp([graph.subject[fact], ...graph.facts.object[fact]].filter((place) => place >= 0), [...graph.links.ofFact.of(fact)]);
  return element(`button.fact-line${options.kind === "retired" ? ".given-up" : options.kind === "over" ? ".over" : ""}`, {
    type: "button", onclick: () => openFact(id), onmouseenter: light, onfocus: light, onmouseleave: () => lightUp(), onblur: () => lightUp(),
    "aria-current": String(state.view === "fact" && state.id === id), data: { fact: id },
  }, element("span.what", {}, factWords(fact, options)), element("span.when", {}, options.when ?? spanOf(fact, options.point)));
}

export function factLines(facts, options = {}) {
  const most = options.most ?? 200;
  return element("ul", {}, facts.slice(0, most).map((fact) => element("li", {}, factLine(fact, options))),
    facts.length > most && element("li.faint.small", {}, t("and more", { count: (facts.length - most).toLocaleString() })));
}

// Return a line for a fact from the API.
export function apiFactLine(fact, extra = null) {
  return element(`button.fact-line${fact.expired_at ? ".given-up" : ""}`, { type: "button", onclick: () => openFact(fact.id), data: { fact: fact.id } },
    element("span.what", {}, fact.sentence), element("span.when", {}, extra ?? showPeriod(fact)));
}

export function chips(fact, { doubtful = true } = {}) {
  return element("div.row.wrap", {},
    element("span.chip", {}, t(`kind ${fact.kind}`)),
    fact.expired_at && element("span.chip.retired", {}, t("not believed any more")),
    !fact.reviewed && element("span.chip.disputed", {}, t("not reviewed")),
    fact.disputed_by.length > 0 && element("span.chip.disputed", {}, t("disputed")),
    doubtful && fact.doubtful_since && element("span.chip.doubtful", {}, t("doubtful since", { day: showMinute(fact.doubtful_since) })),
    fact.absent && element("span.chip.ended", {}, t("nothing in its place")),
    !fact.confirmed && element("span.chip.disputed", {}, t("not confirmed")));
}

// Return the words of a message; those of a fact that was declared, which is stored as JSON, as a sentence.
export function wordsOfMessage({ content }) {
  try {
    const { subject, predicate, object, sentence } = JSON.parse(content);
    if (subject && predicate) return sentence ?? `${subject} ${wordsOf(predicate)} ${[object ?? []].flat().join(", ")}`;
  } catch { /* a message in words */ }
  return content;
}

// Return a message with its quote marked. `start` and `end` count characters as Python does, not UTF-16 units.
export function message(episode, quote = null) {
  const words = wordsOfMessage(episode);
  const characters = [...words];
  const text = element("p");
  if (quote && quote.end > quote.start && words === episode.content) {
    append(text, [characters.slice(0, quote.start).join(""), element("mark", {}, characters.slice(quote.start, quote.end).join("")), characters.slice(quote.end).join("")]);
  } else text.append(words);
  return element("blockquote.message", { style: { margin: "0" } },
    element("div.who", {}, element("strong", {}, episode.speaker ?? episode.source ?? t("nobody")), element("time", { dateTime: episode.at }, showMinute(episode.at)),
      episode.source_id && element("span", {}, episode.source_id), episode.trust < 1 && element("span.chip", {}, t("trust of", { trust: episode.trust }))),
    text);
}

// Return a quote, which a source of a fact from the API has, as a message.
export const quoteOf = (source) => message({ ...source, content: source.quote });

// Return whether a fact from the API only quotes its speaker ("Ann: I love jazz"): its message is shown, and no fact.
export const isQuote = (fact) => fact.sources.some(({ speaker }) => speaker && fact.sentence.startsWith(`${speaker}: `));

export function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), children);
}

export function cost(usage) {
  const parts = [];
  if (usage.calls) parts.push(count("model calls", usage.calls), count("tokens", (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0)));
  else parts.push(t("no model call"));
  if (usage.seconds) parts.push(`${usage.seconds.toFixed(2)} s`);
  return element("span.cost", {}, parts.join(" · "));
}

export function loading() {
  return element("p.faint", { role: "status" }, t("loading"));
}

export function failure(error) {
  return element("p.error", { role: "alert" }, error.message);
}
