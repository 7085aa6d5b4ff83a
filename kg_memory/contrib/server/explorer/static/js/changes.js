// The panel with the facts that differ between A and B, by kind of difference.

import { button, element } from "./dom.js";
import { t } from "./i18n.js";
import { anyFilter, listChanges, look, onLook, pointA, pointB } from "./looking.js";
import { showMinute } from "./dates.js";
import { factLines } from "./pieces.js";
import { toggleCompare } from "./plane-bar.js";
import { state } from "./store.js";

const KINDS = ["begun", "ended", "retired", "doubtful"];
let listening = false;
let box = null;
let waiting = 0;

export function showChanges() {
  if (!listening) {
    listening = true;
    const again = () => { // rebuild the lists only when dragging pauses
      clearTimeout(waiting);
      waiting = setTimeout(() => { if (box?.isConnected) box.replaceChildren(...content()); }, 150);
    };
    onLook("time", again);
    onLook("doubts", again);
  }
  box = element("div.stack", {}, content());
  return [box];
}

function content() {
  if (!state.compare) {
    return [element("p.soft", {}, t("changes intro")), element("div", {}, button(t("compare"), toggleCompare, {}, ".primary"))];
  }
  const lists = listChanges();
  const [a, b] = [pointA(), pointB()];
  const shown = KINDS.filter((kind) => lists[kind].length || kind === state.id);
  shown.sort((one, other) => Number(other === state.id) - Number(one === state.id));
  return [
    element("p.soft", {}, t("from A to B", { a: showMinute(a.time), heldA: showMinute(a.believed), b: showMinute(b.time), heldB: showMinute(b.believed) })),
    shown.length === 0 && element("p", {}, t(anyFilter() ? "no difference shown" : "no difference")),
    ...shown.map((kind) => element("section", {}, element("h3", {}, element(`span.chip.${kind}`, {}, t(kind)), element("span", {}, lists[kind].length.toLocaleString())),
      element("p.faint.small", {}, t(`${kind} hint`)), factLines(lists[kind], { kind, point: kind === "begun" || kind === "ended" ? b : a }))),
  ].filter(Boolean);
}

