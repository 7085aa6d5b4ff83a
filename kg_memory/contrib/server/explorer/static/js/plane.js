// The time plane: valid time to the right, transaction time upwards, with the cross-hairs A and B.

import { DAY, FAR, findTicks, showDay, showMinute } from "./dates.js";
import { worldRange } from "./data.js";
import { afterFrame, drawing, element, replace } from "./dom.js";
import { count, t } from "./i18n.js";
import { look, now, onLook, pointA, pointB } from "./looking.js";
import { axisOf } from "./scales.js";
import { set, state, subscribe } from "./store.js";
import { colour, onTheme } from "./theme.js";

const CELL = 3; // width and height of a density cell, in pixels
const NAMES = { a: ["at", "believed"], b: ["at2", "believed2"] };
const parts = {};
let range = [0, 1]; // the shown range of valid time
let believed = axisOf([], "time"); // the axis of transaction time
let size = { width: 1, height: 1 };

export function startPlane(box) {
  parts.canvas = element("canvas.density", { "aria-hidden": "true" });
  parts.axis = drawing("svg.axis", { "aria-hidden": "true" });
  parts.marks = drawing("svg.marks", { "aria-hidden": "true" });
  parts.a = handle("a");
  parts.b = handle("b");
  replace(box, parts.canvas, parts.axis, parts.marks, parts.b, parts.a);
  for (const letter of ["b", "a"]) {
    for (const direction of ["x", "y"]) parts[letter + direction] = drawing(`line.hair.${letter}`);
    parts.marks.append(parts[`${letter}x`], parts[`${letter}y`]);
  }
  parts.beliefs = drawing("g");
  parts.marks.prepend(hatch("hatch"), parts.beliefs);
  parts.canvas.addEventListener("pointerdown", (event) => begin(event, event.shiftKey && state.compare ? "b" : "a"));
  parts.canvas.addEventListener("wheel", zoom, { passive: false });
  parts.canvas.addEventListener("dblclick", () => { range = worldRange(look.graph, now()); draw(); });
  new ResizeObserver(measure).observe(box);
  onLook("graph", () => afterFrame(() => { range = worldRange(look.graph, now()); measure(); }));
  onLook("time", move);
  onTheme(draw);
  subscribe(["scale"], draw);
  subscribe(["view", "id"], drawBeliefs);
}

export function hatch(id) {
  return drawing("defs", {}, drawing("pattern", { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    drawing("line.hatching", { x1: 0, y1: 0, x2: 0, y2: 5 })));
}

export const shownRange = () => range;

function handle(letter) {
  const node = element(`button.handle${letter === "b" ? ".b" : ""}`, {
    type: "button", role: "slider", "aria-label": t(`cross-hair ${letter}`), "aria-valuemin": "0", "aria-valuemax": "100",
    title: t("cross-hair keys"), onpointerdown: (event) => begin(event, letter), onkeydown: (event) => nudge(event, letter),
  }, letter.toUpperCase());
  return node;
}

function measure() {
  const box = parts.canvas.parentElement;
  size = { width: Math.max(1, box.clientWidth), height: Math.max(1, box.clientHeight - 20) };
  draw();
}

const toX = (time) => ((time - range[0]) / (range[1] - range[0])) * size.width;
const fromX = (x) => range[0] + (x / size.width) * (range[1] - range[0]);
const toY = (time) => (1 - believed.place(time)) * size.height;
const fromY = (y) => believed.time(1 - y / size.height);

function draw() {
  if (!parts.canvas) return;
  const { graph } = look;
  believed = axisOf(graph.created.length ? [graph.created, graph.expired] : [[now() - 86400000], []], state.scale, now());
  drawDensity(graph);
  drawAxis();
  drawBeliefs();
  move();
}

// Draw how many facts held at each valid time, as believed at each transaction time: darker means more.
function drawDensity(graph) {
  const columns = Math.ceil(size.width / CELL);
  const rows = Math.ceil(size.height / CELL);
  const counts = new Int32Array((columns + 1) * (rows + 1));
  const clamp = (value, most) => Math.max(0, Math.min(most, Math.round(value)));
  for (let i = 0; i < graph.from.length; i++) {
    if (graph.proposed[i]) continue;
    const left = clamp(toX(graph.from[i]) / CELL, columns);
    const right = clamp(toX(graph.until[i]) / CELL, columns);
    const low = clamp(believed.place(graph.created[i]) * rows, rows);
    const high = clamp(believed.place(graph.expired[i]) * rows, rows);
    if (left >= right || low >= high) continue;
    counts[low * (columns + 1) + left]++;
    counts[low * (columns + 1) + right]--;
    counts[high * (columns + 1) + left]--;
    counts[high * (columns + 1) + right]++;
  }
  for (let row = 0; row <= rows; row++) for (let column = 1; column <= columns; column++) counts[row * (columns + 1) + column] += counts[row * (columns + 1) + column - 1];
  for (let row = 1; row <= rows; row++) for (let column = 0; column <= columns; column++) counts[row * (columns + 1) + column] += counts[(row - 1) * (columns + 1) + column];
  paint(counts, columns, rows);
}

function paint(counts, columns, rows) {
  const canvas = parts.canvas;
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d", { willReadFrequently: true }); // drawn by the CPU: the GPU takes long to start
  const image = context.createImageData(columns, rows);
  const shade = parseInt(colour("density").slice(1), 16);
  let most = 1;
  for (const count of counts) if (count > most) most = count;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const count = counts[(rows - 1 - row) * (columns + 1) + column];
      const at = 4 * (row * columns + column);
      image.data[at] = shade >> 16;
      image.data[at + 1] = (shade >> 8) & 255;
      image.data[at + 2] = shade & 255;
      image.data[at + 3] = count ? 14 + 96 * Math.sqrt(count / most) : 0;
    }
  }
  context.putImageData(image, 0, 0);
}

function drawAxis() {
  const narrow = size.width < 420;
  const left = narrow ? 62 : 74;
  const lines = [];
  for (const { at, text } of findTicks(range[0], range[1], size.width / 110)) {
    const x = left + toX(at);
    lines.push(drawing("line", { x1: x, x2: x, y1: 0, y2: size.height + 3 }), drawing("text", { x, y: size.height + 16, "text-anchor": "middle" }, text));
  }
  for (const { place, text } of believed.brief ? [] : believed.ticks(Math.max(2, size.height / 30))) {
    const y = (1 - place) * size.height;
    lines.push(drawing("line", { x1: left - 3, x2: left + size.width, y1: y, y2: y }), drawing("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, text));
  }
  lines.push(
    drawing("text.name", { x: left + size.width - 6, y: size.height - 6, "text-anchor": "end" }, `${t("valid on")} →`),
    drawing("text.name", { x: left + 6, y: 14 }, `↑ ${believed.brief && look.graph.created.length ? t("learned within", { day: showDay(believed.brief[0]), span: count("seconds", Math.ceil((believed.brief[1] - believed.brief[0]) / 1000) || 1) }) : t(believed.kind === "changes" ? "known on, by changes" : "known on")}`),
  );
  replace(parts.axis, lines);
}

// Draw the beliefs of the open fact or entity as areas of the plane; those given up are hatched.
function drawBeliefs() {
  const { graph } = look;
  const facts = state.view === "fact" ? [graph.factPlace.get(state.id)] : state.view === "entity" && graph.entityPlace.has(state.id) ? graph.factsOf.of(graph.entityPlace.get(state.id)) : [];
  const boxes = [];
  for (const fact of facts.slice(0, 60)) {
    if (fact === undefined) continue;
    for (const belief of graph.beliefs.of(fact)) {
      const x1 = Math.max(0, toX(graph.from[belief]));
      const x2 = Math.min(size.width, toX(graph.until[belief]));
      const y1 = Math.max(0, toY(graph.expired[belief]));
      const y2 = Math.min(size.height, toY(graph.created[belief]));
      if (x2 <= x1 || y2 <= y1) continue;
      const past = graph.expired[belief] < FAR ? ".past" : "";
      boxes.push(drawing(`rect.belief${past}${state.view === "entity" ? ".many" : ""}`, { x: x1 + 0.5, y: y1 + 0.5, width: Math.max(1, x2 - x1 - 1), height: Math.max(1, y2 - y1 - 1) }));
    }
  }
  replace(parts.beliefs, boxes);
}

function move() {
  if (!parts.a) return;
  setHair("a", pointA(), true);
  setHair("b", pointB(), state.compare);
}

function setHair(letter, point, shown) {
  const node = parts[letter];
  const x = Math.max(0, Math.min(size.width, toX(point.time)));
  const y = Math.max(0, Math.min(size.height, toY(point.believed)));
  node.hidden = !shown;
  node.style.transform = `translate(${x}px, ${y}px)`;
  node.setAttribute("aria-valuenow", String(Math.round((100 * x) / size.width)));
  node.setAttribute("aria-valuetext", t("valid on, known on", { time: showMinute(point.time), believed: showMinute(point.believed) }));
  const hairs = [[`${letter}x`, x, x, 0, size.height], [`${letter}y`, 0, size.width, y, y]];
  for (const [name, x1, x2, y1, y2] of hairs) {
    for (const [key, value] of Object.entries({ x1, x2, y1, y2 })) parts[name].setAttribute(key, value);
    parts[name].style.display = shown ? "" : "none";
  }
}

function begin(event, letter) {
  if (event.button !== 0) return;
  event.preventDefault();
  const target = event.currentTarget;
  target.setPointerCapture(event.pointerId);
  const bounds = parts.canvas.getBoundingClientRect();
  const follow = (moved) => goTo(letter, moved.clientX - bounds.left, moved.clientY - bounds.top);
  if (target === parts.canvas) follow(event);
  target.addEventListener("pointermove", follow);
  target.addEventListener("lostpointercapture", () => target.removeEventListener("pointermove", follow), { once: true });
  parts[letter].focus({ preventScroll: true });
}

// At the very top, or near the line of the present, the time is "now" and moves on with the clock. Where a pixel is more
// than half a day, valid time moves by whole days.
function goTo(letter, x, y) {
  const [at, held] = NAMES[letter];
  const step = (range[1] - range[0]) / size.width > DAY / 2 ? DAY : 1;
  const time = fromX(Math.max(0, Math.min(size.width, x)));
  const present = Math.abs(x - toX(now())) < 4;
  set({ [at]: present ? null : step * Math.round(time / step), [held]: y < 4 ? null : Math.round(fromY(Math.min(size.height, y))) });
}

function nudge(event, letter) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-1e9, 0], End: [1e9, 0], PageUp: [0, -1e9], PageDown: [0, 1e9] }[event.key];
  if (!steps) return;
  event.preventDefault();
  const point = letter === "a" ? pointA() : pointB();
  const far = event.shiftKey ? 40 : 8;
  goTo(letter, toX(point.time) + far * steps[0], Math.max(0, Math.min(size.height, toY(point.believed))) + far * steps[1]);
}

function zoom(event) {
  event.preventDefault();
  const at = fromX(event.clientX - parts.canvas.getBoundingClientRect().left);
  const factor = Math.exp(event.deltaY * 0.0015);
  const whole = worldRange(look.graph, now());
  const next = [at - (at - range[0]) * factor, at + (range[1] - at) * factor];
  if (next[1] - next[0] < 60000) return;
  range = [Math.max(whole[0], next[0]), Math.min(whole[1], next[1])];
  draw();
}
