// The live view: boxes to add a message and to ask, and a feed of how messages are read, with the cost.

import { follow, post, request } from "./api.js";
import { showMinute } from "./dates.js";
import { element, toast } from "./dom.js";
import { t } from "./i18n.js";
import { apiFactLine, cost, isQuote, wordsOfMessage } from "./pieces.js";
import { refreshSoon } from "./refresh-soon.js";
import { set } from "./store.js";

const KEPT = 60;
const SIGNS = { learned: "+", ended: "−", corrected: "~", retracted: "×", restored: "↺", doubtful: "?", sure: "✓", disputed: "⚖" };
const entries = []; // newest first: {episode, changes} or {change}
let totals = null;
let connected = false;
let feed = null;
let status = null;
let listening = null;
let speaker = "";

export function showLive() {
  feed = element("ul.feed", { id: "feed" });
  status = element("p.faint.small", { role: "status" });
  drawFeed();
  return [sayBox(), askBox(), element("section", {}, element("h3", {}, t("what happens")), status, feed)];
}

function sayBox() {
  const who = element("input", { type: "text", value: speaker, placeholder: t("who says it"), "aria-label": t("who says it"), oninput: () => { speaker = who.value; } });
  const words = element("textarea", { placeholder: t("say placeholder"), "aria-label": t("say something"), rows: 2, onkeydown: sendOnEnter });
  return element("form.say", { id: "say", onsubmit: (event) => { event.preventDefault(); say(who, words); } },
    element("h3", {}, t("say something")), words, element("div.row", {}, who, element("button.primary", { type: "submit" }, t("remember"))));
}

function askBox() {
  const words = element("textarea", { placeholder: t("ask placeholder"), "aria-label": t("ask something"), rows: 1, style: { "min-height": "30px" }, onkeydown: sendOnEnter });
  return element("form.say", { id: "ask", onsubmit: (event) => { event.preventDefault(); if (words.value.trim()) set({ view: "search", q: words.value.trim() }, { push: true }); } },
    element("h3", {}, t("ask something")), words, element("div.row", {}, element("span.grow.faint.small", {}, t("ask hint")), element("button", { type: "submit" }, t("ask"))));
}

function sendOnEnter(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  event.currentTarget.form.requestSubmit();
}

async function say(who, words) {
  const content = words.value.trim();
  if (!content) return;
  try {
    const result = await post("episodes", { content, ...(who.value.trim() ? { speaker: who.value.trim() } : {}), thread: "explorer", source: "explorer" });
    note({ id: result.episode, content, speaker: who.value.trim() || null, at: new Date().toISOString(), status: result.status, took: {} });
    words.value = "";
    words.focus();
    if (!listening) listen();
  } catch (error) {
    toast(error.message);
  }
}

// Load the demo story: its messages are added like any others.
export async function loadStory() {
  const text = await (await request("GET", "explorer/story.jsonl")).text();
  const episodes = text.trim().split("\n").map((line) => JSON.parse(line));
  await post("episodes/batch", { episodes });
  set({ view: "live" });
}

// Follow the events of the current namespace.
export function listen() {
  entries.length = 0;
  totals = null;
  connect();
}

function connect() {
  listening?.abort();
  listening = new AbortController();
  follow("events", receive, (up) => { connected = up; drawStatus(); }, listening.signal);
}

function receive(name, data) {
  if (name === "episode") note(data);
  else if (name === "counts") totals = data;
  else if (name.startsWith("fact.")) addChange(name.slice(5), data);
  if (name !== "counts") refreshSoon();
  drawFeed();
}

function note(episode) {
  const before = entries.find((entry) => entry.episode?.id === episode.id);
  if (before) before.episode = { ...before.episode, ...episode };
  else entries.unshift({ episode, changes: [] });
  entries.length = Math.min(entries.length, KEPT);
  drawFeed();
}

// Show a change below the message that caused it, or that states the fact, if it is shown.
function addChange(kind, change) {
  const fact = change.after ?? change.before;
  if (isQuote(fact)) return;
  const ids = new Set(fact.sources.map((source) => source.episode));
  const entry = entries.find((one) => one.episode?.id === change.cause) ?? entries.find((one) => ids.has(one.episode?.id));
  const item = { kind, fact, at: change.at };
  if (entry) {
    if (!entry.changes.some((one) => one.kind === kind && one.fact.id === fact.id && one.at === change.at)) entry.changes.push(item);
  } else entries.unshift({ changes: [item] });
}

// Remove from the feed what was forgotten, and that a fact ended which is valid again.
export function dropForgotten({ episodes, facts, restored }) {
  const isGone = ({ kind, fact }) => facts.includes(fact.id) || (kind === "ended" && restored.includes(fact.id));
  for (const entry of entries) entry.changes = entry.changes.filter((change) => !isGone(change));
  entries.splice(0, entries.length, ...entries.filter(({ episode, changes }) => (episode ? !episodes.includes(episode.id) : changes.length)));
  drawFeed();
}

function drawStatus() {
  if (!status) return;
  const words = [t(connected ? "listening" : "not listening")];
  if (totals) words.push(t("today", { calls: totals.calls, tokens: (totals.input_tokens + totals.output_tokens).toLocaleString(), waiting: totals.saved + totals.waiting + totals.working }));
  status.textContent = words.join(" · ");
}

function drawFeed() {
  drawStatus();
  if (!feed) return;
  feed.replaceChildren(...(entries.length ? entries.map(drawEntry) : [element("li.faint", {}, t("nothing yet"))]));
}

function drawEntry({ episode, changes }) {
  return element("li", {}, episode && element("div", {},
    element("div.row.wrap", {}, element("strong", {}, episode.speaker ?? episode.source ?? t("nobody")), element("span.faint.small", {}, showMinute(episode.at)), element(`span.chip${episode.status === "done" ? ".begun" : episode.status === "failed" ? ".ended" : ""}`, {}, t(`status ${episode.status}`)),
      episode.status === "done" && cost(episode.took ?? {})),
    element("p", {}, wordsOfMessage(episode)), episode.reason && element("p.faint.small", {}, episode.reason)),
  element("div.learned-facts", {}, changes.map(({ kind, fact }) => element("div.row", {}, element(`span.chip.${kind}`, { title: t(`change ${kind}`) }, SIGNS[kind] ?? "·"), element("span.visually-hidden", {}, t(`change ${kind}`)), apiFactLine(fact)))));
}


// A browser allows few connections to one server, so a hidden page closes its event stream.
document.addEventListener("visibilitychange", () => {
  if (!listening) return;
  if (document.hidden) listening.abort();
  else {
    connect();
    refreshSoon();
  }
});
