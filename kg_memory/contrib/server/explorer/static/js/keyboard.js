// Keyboard shortcuts of the page.

import { button, element, openDialog } from "./dom.js";
import { t } from "./i18n.js";
import { toChange, toNow, toggleCompare } from "./plane-bar.js";
import { reviewKey } from "./review.js";
import { set, state } from "./store.js";
import { lightUp } from "./graph.js";
import { toggleFocus } from "./entity.js";

const VIEWS = { l: "live", d: "changes", r: "review", s: "search", m: "saved" };
const HELP = [["/", "search"], ["l s d r m", "keys views"], ["[ ]", "keys changes"], ["c", "compare hint"], ["n", "now hint"], ["g", "keys focus"], ["j k a x e u", "keys review"], ["← → ↑ ↓", "keys hair"], ["Esc", "keys escape"], ["?", "help"]];

export function startKeyboard() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && !["checkbox", "radio", "range"].includes(event.target.type);
    if (event.key === "Escape") return leave(event, typing);
    if (!typing && take(event.key)) event.preventDefault();
  });
}

function take(key) {
  if (reviewKey(key)) return true;
  if (key in VIEWS) set({ view: VIEWS[key], id: "", pane: "panel" }, { push: true });
  else if (key === "/") document.getElementById("search").select();
  else if (key === "c") toggleCompare();
  else if (key === "n") toNow();
  else if (key === "[" || key === "]") toChange(key === "]" ? 1 : -1);
  else if (key === "g" && (state.view === "entity" || state.focus)) toggleFocus(state.view === "entity" ? state.id : state.focus);
  else if (key === "?") openHelp();
  else return false;
  return true;
}

function leave(event, typing) {
  if (typing) event.target.blur();
  else if (state.focus) set({ focus: "" }, { push: true });
  else if (["entity", "fact", "link"].includes(state.view)) set({ view: "live", id: "" }, { push: true });
  lightUp();
}

export function openHelp() {
  openDialog(t("help"), (form, close) => {
    form.append(element("p", {}, t("help plane")), element("p.soft", {}, t("help graph")),
      element("dl.keys", {}, HELP.map(([keys, words]) => [element("dt", {}, keys.split(" ").map((key) => [element("kbd", {}, key), " "])), element("dd", {}, t(words))])),
      element("div.buttons", {}, button(t("close"), close, {}, ".primary")));
  });
}
