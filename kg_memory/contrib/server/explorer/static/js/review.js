// The inbox of waiting reviews, with keyboard control: uncertain verdicts, and doubts about identities.

import { post, read, readAll } from "./api.js";
import { showMinute, showPeriod, typed } from "./dates.js";
import { button, buttons, element, field, openDialog, toast } from "./dom.js";
import { t } from "./i18n.js";
import { showDecision } from "./entity.js";
import { message, openEntity, openFact, section } from "./pieces.js";
import { refresh } from "./refresh.js";
import { state } from "./store.js";

export const waiting = { count: 0 };
const KINDS = ["supersedes", "conflicts", "complements", "temporary", "duplicate", "unrelated"];
let items = [];
let chosen = 0;
let undoLast = null; // what the key u runs

export async function showReview() {
  const [reviews, doubts, decided, identities] = await Promise.all([readAll("reviews"), readAll("identities/waiting"), read("reviews", { decided: true, limit: 20 }), read("identities", { limit: 20 })]);
  await Promise.all(doubts.map(readSaid));
  items = [...reviews.map((review) => ({ review })), ...doubts.map((doubt) => ({ doubt }))];
  const closed = decided.items.filter((review) => review.ruling !== "waiting"); // undone reviews wait again
  waiting.count = items.length;
  chosen = Math.min(chosen, Math.max(0, items.length - 1));
  const list = element("div.stack", { id: "inbox" }, items.map((item, number) => (item.review ? showVerdict(item.review, null, number === chosen) : showDoubt(item.doubt, number === chosen))));
  return [
    element("p.soft.small", {}, t("review intro"), " ", element("kbd", {}, "j"), " ", element("kbd", {}, "k"), ` ${t("choose")} · `, element("kbd", {}, "a"), ` ${t("accept")} · `, element("kbd", {}, "x"), ` ${t("reject")} · `,
      element("kbd", {}, "e"), ` ${t("edit")} · `, element("kbd", {}, "u"), ` ${t("undo")}`),
    items.length ? list : element("p", {}, t("nothing waits")),
    closed.length + identities.items.length > 0 && section(t("decided"), element("div.stack", {}, identities.items.map(showDecision), closed.map((review) => showVerdict(review, null)))),
  ].filter(Boolean);
}

// Add to a doubt the last message about each of its entities without facts.
async function readSaid(doubt) {
  const bare = [doubt.entity, doubt.second].filter((entity, side) => entity && !doubt.latest[side].length);
  const cards = await Promise.all(bare.map((entity) => read(`entities/${encodeURIComponent(entity.id)}`, { limit: 1 })));
  doubt.said = new Map(cards.filter((card) => card.episodes.length).map(({ entity, episodes: [last] }) => [entity.id, message(last)]));
}

export async function countWaiting() {
  const [stats, doubts] = await Promise.all([read("stats"), read("identities/waiting", { limit: 100 })]);
  waiting.count = stats.reviews + doubts.items.length;
  return stats;
}

// Return a verdict with its two facts, reason, author and buttons.
export function showVerdict(review, about = null, current = false) {
  const side = (name, fact) => [element("dt", {}, t(name)), element("dd", {}, fact.id === about ? element("strong", {}, fact.sentence) : button(fact.sentence, () => openFact(fact.id), {}, ".link"),
    element("span.faint.small", {}, ` ${showPeriod(fact)}`), fact.sources[0] && element("p.soft.small", {}, `“${fact.sources[0].quote}” `, fact.sources[0].speaker ? `— ${fact.sources[0].speaker}` : ""))];
  const latest = review.decisions.at(-1);
  const open = review.ruling === "waiting";
  const stands = !["edit", "reject"].includes(latest?.decision); // else a person has decided against it
  return element("div.verdict", { "aria-current": String(current), data: { review: review.id } },
    element("div.row.wrap", {}, stands && element(`span.chip${open ? ".disputed" : ""}`, {}, t(`verdict ${review.kind}`)), element("span.chip", {}, t(`ruling ${review.ruling}`)), element("span.faint.small", {}, t("sure", { sure: review.confidence.toFixed(2) }))),
    element("dl.pair", {}, side("new", review.pending), side("stored", review.existing)),
    open && element("p", {}, t(`accepting ${review.kind}`, { later: review.pending.sentence, earlier: review.existing.sentence })),
    open && element("p", {}, t("rejecting", { later: review.pending.sentence })),
    stands && review.reason && element("p.soft", {}, review.reason),
    element("p.faint.small", {}, latest ? [t(`decided ${latest.decision}`, { by: latest.by, at: showMinute(latest.at) }), latest.reason && `: ${latest.reason}`] : t("judged by", { by: review.decided_by === "auto" ? t("the model or the rules") : review.decided_by, at: showMinute(review.created_at) })),
    element("div.actions", {}, (open || latest?.decision === "reject") && button(t("accept"), () => decide(review, "accept"), {}, open ? ".primary" : ""), latest?.decision !== "reject" && button(t("reject"), () => decide(review, "reject")), button(t("edit…"), () => openEdit(review)),
      latest && latest.decision !== "undo" && button(t("undo"), () => undo(review))));
}

function showDoubt(doubt, current) {
  const side = (entity, latest) => [element("dt", {}, button(entity.name, () => openEntity(entity.id), {}, ".link")), element("dd", {}, latest.length ? latest.join(" · ") : (doubt.said.get(entity.id) ?? "–"))];
  return element("div.verdict", { "aria-current": String(current), data: { doubt: doubt.id } },
    element("p", {}, element("span.chip.disputed", {}, t("same?")), " ", t("doubt", { first: doubt.entity.name, second: doubt.second?.name ?? "?" })),
    element("dl.pair", {}, side(doubt.entity, doubt.latest[0]), doubt.second && side(doubt.second, doubt.latest[1])),
    element("div.actions", {}, button(t("merge them"), () => decideDoubt(doubt, "accept"), {}, ".primary"), button(t("keep apart"), () => decideDoubt(doubt, "reject"))));
}

async function decide(review, choice, more = {}) {
  await act(async () => {
    await post(`reviews/${encodeURIComponent(review.id)}/decide`, { choice, seen: review.ruling, ...more });
    setUndo(() => undo(review));
    toast(t(`done ${choice}`), { label: `${t("undo")} (u)`, run: () => undo(review) });
  });
}

async function undo(review) {
  await act(async () => {
    await post(`reviews/${encodeURIComponent(review.id)}/undo`);
    setUndo(null);
    toast(t("undone"));
  });
}

async function decideDoubt(doubt, choice) {
  await act(async () => {
    const decision = await post(`identities/${encodeURIComponent(doubt.id)}/decide`, { choice });
    const back = () => act(() => post(`identities/${encodeURIComponent(decision.id)}/undo`));
    setUndo(back);
    toast(t(choice === "accept" ? "merged" : "kept apart"), { label: `${t("undo")} (u)`, run: back });
  });
}

// Let the key u run `back`, or nothing if it is null.
export function setUndo(back) {
  undoLast = back;
}

export async function act(run) {
  try {
    await run();
    await refresh();
  } catch (error) {
    toast(error.message);
  }
}

function openEdit(review) {
  openDialog(t("edit verdict"), (form, close) => {
    const kind = element("select", {}, KINDS.map((name) => element("option", { value: name, selected: name === review.kind }, t(`verdict ${name}`))));
    const was = { from: typed(review.pending.valid_at, review.pending.precision), until: typed(review.pending.invalid_at, review.pending.end_precision) };
    const from = element("input", { type: "text", value: was.from, placeholder: "2024-05" });
    const until = element("input", { type: "text", value: was.until, placeholder: t("still so") });
    const reason = element("input", { type: "text" });
    form.append(element("p.soft", {}, review.pending.sentence), field(t("relation"), kind), field(t("later began"), from), field(t("later ended"), until), field(t("reason"), reason),
      buttons(close, t("cancel"), element("button.primary", { type: "submit" }, t("save"))));
    form.addEventListener("submit", () => decide(review, "edit", {
      verdict: kind.value, reason: reason.value,
      ...(from.value && from.value !== was.from ? { valid_at: from.value } : {}),
      ...(until.value && until.value !== was.until ? { invalid_at: until.value } : {}),
    }));
  });
}

// Handle the inbox's keyboard shortcuts; return true if one matched.
export function reviewKey(key) {
  if (key === "u" && undoLast) { undoLast(); return true; }
  if (state.view !== "review" || !items.length) return false;
  const { review, doubt } = items[chosen];
  switch (key) {
    case "j": case "k": move(key === "j" ? 1 : -1); return true;
    case "a": if (review) decide(review, "accept"); else decideDoubt(doubt, "accept"); return true;
    case "x": if (review) decide(review, "reject"); else decideDoubt(doubt, "reject"); return true;
    case "e": if (review) openEdit(review); return true;
    default: return false;
  }
}

function move(step) {
  chosen = Math.max(0, Math.min(items.length - 1, chosen + step));
  const boxes = [...(document.getElementById("inbox")?.children ?? [])];
  boxes.forEach((box, number) => box.setAttribute("aria-current", String(number === chosen)));
  boxes[chosen]?.scrollIntoView({ block: "nearest" });
}
