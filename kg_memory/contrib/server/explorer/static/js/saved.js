// The list of facts that hold now, with their sources; deletes facts, and pauses or resumes saving.

import { post, read } from "./api.js";
import { showDay, showPeriod } from "./dates.js";
import { button, element, replace } from "./dom.js";
import { t } from "./i18n.js";
import { openForget } from "./forget.js";
import { failure, isQuote, openFact, quoteOf } from "./pieces.js";
import { act } from "./review.js";

const MOST = 50;

export async function showSaved() {
  const [stats, page] = await Promise.all([read("stats"), readPage()]);
  const list = element("ul.lines", { id: "saved" }, page.items.map(line));
  const more = element("div");
  offerMore(page, list, more);
  return [
    element("p.soft.small", {}, t("saved intro")),
    element("div.row.wrap", {}, element("span.grow", { role: "status" }, t(stats.paused ? "saving is off" : "saving is on")),
      button(t(stats.paused ? "turn saving on" : "turn saving off"), () => act(() => post(stats.paused ? "unpause" : "pause")), { id: "saving" })),
    page.items.length ? list : element("p", {}, t("no saved memories")),
    more,
  ];
}

function readPage(cursor = null) {
  return read("facts", { as_of: "now", limit: MOST, cursor });
}

// Return a button for the next page, if there is one.
function offerMore(page, list, more) {
  if (!page.next) return more.replaceChildren();
  return replace(more, button(t("more memories"), async () => {
    try {
      const next = await readPage(page.next);
      list.append(...next.items.map(line));
      offerMore(next, list, more);
    } catch (error) {
      replace(more, failure(error));
    }
  }));
}

function line(fact) {
  return element("li.stack", { data: { fact: fact.id } },
    isQuote(fact) ? fact.sources.map(quoteOf) : element("p", {}, fact.sentence),
    element("p.faint.small", {}, t("saved on", { day: showDay(Date.parse(fact.created_at)) }), !isQuote(fact) && ` · ${showPeriod(fact)}`),
    !isQuote(fact) && element("details", {}, element("summary", {}, t("show source")), fact.sources.length ? fact.sources.map(quoteOf) : element("p.faint", {}, t("no source"))),
    element("div.actions", {}, button(t("details"), () => openFact(fact.id)), button(t("delete…"), () => openForget({ fact: fact.id }, fact.sentence), {}, ".danger")));
}
