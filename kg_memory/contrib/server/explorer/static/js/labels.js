// The names in the graph. Each stands where it covers no other name, node or link; one without such a place is left out.

import { colour } from "./theme.js";

const HIGH = 15; // pixels of a line of text
const SIDES = [[1, 0], [-1, 0], [0, 1], [0, -1], [0.7, 0.7], [0.7, -0.7], [-0.7, 0.7], [-0.7, -0.7]];
const ALONG = [0.5, 0.65, 0.35, 0.8, 0.2]; // places on a link for its name
const MANY = 700; // with more nodes or links, only labelled nodes are obstacles
const widths = new Map();
let names = []; // what sigma wants to draw: {key, label, x, y, size, ...}
let predicates = [];
const contexts = {};

export const labels = { shown: [] }; // the placed names: {text, box} or {text, spots}, in pixels

// Return whether a box covers a placed name of an entity.
export const isTaken = (box) => labels.shown.some((name) => name.box && cross(box, name.box));

export function takeName(context, data) {
  contexts.names = context;
  if (data.label) names.push(data);
}

export function takePredicate(context, data, from, to) {
  contexts.predicates = context;
  if (data.label) predicates.push({ ...data, from, to });
}

// Place and draw all names that sigma asked for since the last frame.
export function drawLabels(sigma, drawn, font) {
  const { width, height } = sigma.getDimensions();
  const scene = { width, height, boxes: [], spots: [], ...obstacles(sigma, drawn) };
  labels.shown = [];
  names.sort((a, b) => Number(b.forceLabel) - Number(a.forceLabel) || b.size - a.size);
  for (const name of names) placeName(name, scene, `500 12.5px ${font}`);
  for (const one of predicates) placePredicate(one, scene, `10.5px ${font}`);
  names = [];
  predicates = [];
}

function obstacles(sigma, drawn) {
  const discs = new Map();
  const lines = [];
  const few = drawn.order <= MANY && drawn.size <= MANY;
  const add = (node) => {
    const data = sigma.getNodeDisplayData(node);
    if (!data || data.hidden) return;
    const { x, y } = sigma.framedGraphToViewport(data);
    discs.set(node, { x, y, size: sigma.scaleSize(data.size), near: [0, 0], links: 0 });
  };
  if (!few) names.forEach(({ key }) => add(key));
  else {
    drawn.forEachNode(add);
    drawn.forEachEdge((key, _, source, target) => {
      const [a, b] = [discs.get(source), discs.get(target)];
      if (!a || !b || sigma.getEdgeDisplayData(key).hidden) return;
      lines.push({ key, a, b });
      const long = Math.hypot(b.x - a.x, b.y - a.y) || 1;
      for (const [one, sign] of [[a, 1], [b, -1]]) {
        one.links += 1;
        one.near[0] += (sign * (b.x - a.x)) / long;
        one.near[1] += (sign * (b.y - a.y)) / long;
      }
    });
  }
  return { discs, lines };
}

function widthOf(context, text) {
  const key = `${context.font} ${text}`;
  if (!widths.has(key)) widths.set(key, context.measureText(text).width);
  return widths.get(key);
}

// Try the sides of a node, first the one away from its links. A name with many links may cover them, on a plate, and in
// a crowd small entities too.
function placeName(name, scene, font) {
  const context = contexts.names;
  context.font = font;
  const wide = widthOf(context, name.label);
  const disc = scene.discs.get(name.key);
  const [dx, dy] = disc?.near ?? [0, 0];
  const away = ([x, y]) => -(x * dx + y * dy);
  const sides = [...SIDES].sort((a, b) => away(b) - away(a));
  const boxes = sides.map(([x, y]) => {
    const [cx, cy] = [name.x + x * (name.size + 4) + (x * wide) / 2 / Math.max(0.7, Math.abs(x)), name.y + y * (name.size + 3 + HIGH / 2)];
    return [cx - wide / 2, cy - HIGH / 2, cx + wide / 2, cy + HIGH / 2];
  });
  const isFree = (box) => inside(box, scene) && !scene.boxes.some((other) => cross(box, other)) && ![...scene.discs.values()].some((one) => distance(one.x, one.y, box) < one.size + (one === disc ? 1 : 6)); // nearer to its own node than to others
  const free = boxes.filter(isFree);
  const clear = free.find((box) => !scene.lines.some(({ a, b }) => cuts(a, b, box)));
  const open = () => boxes.find((one) => inside(one, scene) && !scene.boxes.some((other) => cross(one, other)));
  const box = clear ?? (name.forceLabel || disc?.links > 2 ? (free[0] ?? open()) : null);
  if (!box) return;
  scene.boxes.push(box);
  labels.shown.push({ text: name.label, box });
  if (!clear) {
    context.fillStyle = colour("canvas");
    context.fillRect(box[0] - 2, box[1], wide + 4, HIGH);
  }
  context.fillStyle = name.labelColor;
  context.fillText(name.label, box[0], box[3] - 3.5);
}

// Try the places on a link for its predicate, then for the number of its facts alone.
function placePredicate({ key, label, short, labelColor, from, to }, scene, font) {
  const context = contexts.predicates;
  context.font = font;
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const long = Math.hypot(dx, dy);
  const room = long - from.size - to.size - 14;
  for (const text of [label, short]) {
    if (!text) continue;
    const wide = widthOf(context, text);
    if (wide > room) continue;
    for (const part of ALONG) {
      const middle = (from.size + 4 + Math.max(wide / 2, Math.min(room - wide / 2, part * room))) / long;
      const spots = [];
      for (let at = -wide / 2; at <= wide / 2; at += Math.max(1, wide / Math.ceil(wide / 6))) spots.push([from.x + dx * (middle + at / long), from.y + dy * (middle + at / long)]);
      if (!spots.every((spot) => isOpen(spot, key, scene))) continue;
      scene.spots.push(...spots);
      labels.shown.push({ text, spots });
      return write(context, text, wide, labelColor, [from.x + dx * middle, from.y + dy * middle], Math.atan(dy / dx));
    }
  }
}

function isOpen([x, y], key, { width, height, boxes, spots, discs, lines }) {
  const near = 7;
  return x > near && y > near && x < width - near && y < height - near && !boxes.some((box) => distance(x, y, box) < near) &&
    !spots.some((spot) => Math.hypot(spot[0] - x, spot[1] - y) < 2 * near) && ![...discs.values()].some((one) => Math.hypot(one.x - x, one.y - y) < one.size + near) &&
    !lines.some((line) => line.key !== key && toLine(x, y, line.a, line.b) < near);
}

function write(context, text, wide, shade, [x, y], angle) {
  context.save();
  context.translate(x, y);
  context.rotate(angle);
  context.fillStyle = colour("canvas");
  context.fillRect(-wide / 2 - 2, -6, wide + 4, 12);
  context.fillStyle = shade;
  context.fillText(text, -wide / 2, 3.5);
  context.restore();
}

const inside = (box, { width, height }) => box[0] > 1 && box[1] > 1 && box[2] < width - 1 && box[3] < height - 1;
const cross = (one, other) => one[0] < other[2] + 2 && other[0] < one[2] + 2 && one[1] < other[3] && other[1] < one[3];
const distance = (x, y, box) => Math.hypot(Math.max(box[0] - x, 0, x - box[2]), Math.max(box[1] - y, 0, y - box[3]));

function toLine(x, y, a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const part = Math.max(0, Math.min(1, ((x - a.x) * dx + (y - a.y) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(a.x + part * dx - x, a.y + part * dy - y);
}

// Return whether a line cuts a box (the method of Liang and Barsky).
function cuts(a, b, box) {
  let [first, last] = [0, 1];
  for (const [from, by, least, most] of [[a.x, b.x - a.x, box[0], box[2]], [a.y, b.y - a.y, box[1], box[3]]]) {
    if (!by) {
      if (from < least || from > most) return false;
      continue;
    }
    const [one, other] = [(least - from) / by, (most - from) / by];
    first = Math.max(first, Math.min(one, other));
    last = Math.min(last, Math.max(one, other));
  }
  return first <= last;
}
