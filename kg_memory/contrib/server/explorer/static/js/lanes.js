// Swim lanes of an entity: one lane for each predicate, with periods as bars. Beliefs that were given up are hatched.

import { FAR, findTicks, showSpan } from "./dates.js";
import { drawing, element } from "./dom.js";
import { t } from "./i18n.js";
import { isDoubtful, look, now, pointA, pointB } from "./looking.js";
import { wordsOf } from "./graph.js";
import { hatch } from "./plane.js";
import { openFact } from "./pieces.js";
import { state } from "./store.js";

const WIDTH = 380;
const LEFT = 92;
const ROW = 20;
const MOST = 60;

export function drawLanes(entity) {
  const lanes = listLanes(entity);
  const bars = lanes.flatMap((lane) => lane.rows.flat());
  const [first, last] = rangeOf(bars);
  const toX = (time) => LEFT + Math.max(0, Math.min(1, (time - first) / (last - first))) * (WIDTH - LEFT);
  const height = lanes.reduce((sum, lane) => sum + lane.rows.length * ROW + 6, 0) + 22;
  const svg = drawing("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": t("over time") }, hatch("lane-hatch"));
  for (const { at, text } of findTicks(first, last, 3)) svg.append(drawing("line", { x1: toX(at), x2: toX(at), y1: 0, y2: height - 16 }), drawing("text.tick", { x: toX(at), y: height - 4, "text-anchor": "middle" }, text));
  let y = 2;
  for (const lane of lanes) {
    svg.append(drawing("text.lane-name", { x: 0, y: y + 13 }, clip(wordsOf(lane.name), 15)));
    for (const row of lane.rows) {
      for (const bar of row) svg.append(drawBar(bar, toX, y));
      y += ROW;
    }
    y += 6;
    svg.append(drawing("line", { x1: 0, x2: WIDTH, y1: y - 4, y2: y - 4 }));
  }
  svg.append(drawing("line.at-a", { x1: toX(pointA().time), x2: toX(pointA().time), y1: 0, y2: height - 16 }));
  if (state.compare) svg.append(drawing("line.at-b", { x1: toX(pointB().time), x2: toX(pointB().time), y1: 0, y2: height - 16 }));
  return element("div.lanes", {}, svg, bars.some((bar) => bar.givenUp) && element("p.faint.small", {}, t("hatched")));
}

// Return the beliefs about an entity by predicate. Overlapping bars of a lane lie in separate rows.
function listLanes(entity) {
  const { graph } = look;
  const { believed } = pointA();
  const lanes = new Map();
  for (const fact of [...graph.factsOf.of(entity)].slice(0, MOST * 4)) {
    const name = graph.predicates[graph.predicate[fact]];
    for (const belief of graph.beliefs.of(fact)) {
      if (graph.created[belief] > believed) continue;
      const bar = { fact, belief, from: graph.from[belief], until: graph.until[belief], givenUp: graph.expired[belief] <= believed };
      if (!lanes.has(name)) lanes.set(name, []);
      lanes.get(name).push(bar);
    }
  }
  const ranked = [...lanes].sort((one, other) => rank(other) - rank(one) || (one[0] < other[0] ? -1 : 1)).slice(0, 14);
  return ranked.map(([name, bars]) => ({ name, rows: stack(bars.filter((bar) => !isRepeat(bar, bars)).slice(0, MOST)) }));
}

// Sort lanes with ended beliefs first: they are the most informative.
function rank([, bars]) {
  return bars.filter((bar) => bar.until < FAR).length * 10 + Math.min(9, bars.length);
}

// Return whether a given-up belief looks like one that is still held: such a bar is not drawn.
function isRepeat(bar, bars) {
  return bar.givenUp && bars.some((other) => !other.givenUp && other.fact === bar.fact && other.from === bar.from && other.until === bar.until);
}

function stack(bars) {
  const rows = [];
  for (const bar of [...bars].sort((a, b) => Number(a.givenUp) - Number(b.givenUp) || a.from - b.from)) {
    const row = rows.find((one) => one.every((other) => other.until <= bar.from || bar.until <= other.from));
    if (row) row.push(bar);
    else rows.push([bar]);
  }
  return rows.slice(0, 8);
}

function rangeOf(bars) {
  const times = bars.flatMap((bar) => [bar.from, bar.until]).filter((time) => Math.abs(time) < FAR);
  const last = Math.max(now(), ...times);
  const first = Math.min(...times, last - 30 * 86400000);
  const margin = (last - first) * 0.04;
  return [first - margin, last + margin];
}

function drawBar(bar, toX, y) {
  const { graph } = look;
  const x = toX(bar.from);
  const width = Math.max(5, toX(bar.until) - x - 1);
  const subject = graph.subject[bar.fact];
  const others = [subject, ...graph.facts.object[bar.fact]].filter((place) => graph.entities.id[place] !== state.id);
  const words = others.map((place) => graph.name(place)).join(", ");
  const kind = bar.givenUp ? ".given-up" : isDoubtful(bar.fact) ? ".doubtful" : bar.until <= pointA().time ? ".ended" : "";
  const span = showSpan(graph.valid[bar.belief], bar.until, bar.from);
  const label = `${wordsOf(graph.predicates[graph.predicate[bar.fact]])} ${words}, ${span}${bar.givenUp ? `, ${t("not believed any more")}` : ""}`;
  const open = () => openFact(graph.facts.id[bar.fact]);
  return drawing(`g.bar${kind}`, { tabindex: "0", role: "button", "aria-label": label, onclick: open, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } } },
    drawing("title", {}, label), drawing("rect", { x, y: y + 1, width, height: ROW - 4, rx: 3 }),
    width > 22 && drawing("text", { x: x + 5, y: y + 13.5 }, clip(words, Math.floor(width / 6.4))));
}

// Return the whole words that fit. A cut word would not occur in the label that screen readers read.
function clip(text, most) {
  let kept = "";
  for (const word of text.split(" ")) {
    if ([...kept, ...word].length + 1 > most) break;
    kept = `${kept} ${word}`.trim();
  }
  return kept.replace(/,$/, "");
}
