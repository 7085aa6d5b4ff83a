// The graph at A, drawn by sigma: entities by type and mentions, links by predicate, and their differences at B.

import { BEGUN, ENDED, HOLDS, RETIRED } from "./data.js";
import { drawAreas } from "./areas.js";
import { afterFrame } from "./dom.js";
import { count as countWords } from "./i18n.js";
import { drawLabels, labels, takeName, takePredicate } from "./labels.js";
import { SMALL, firstPositions, keepPositions, place, stop } from "./layout.js";
import { look, onLook } from "./looking.js";
import { state } from "./store.js";
import { colour, onTheme, predicateHues, typeColour } from "./theme.js";

const { Graph: Graphology } = window.graphology;
const MANY = 3000; // from this many links on, arrows are left out
const VAST = 20000; // from this many links on, they are thin, and most are drawn after the entities
const FEW = 250; // up to so many entities or links, all are named where there is room
const COARSE = 3000; // links that a vast graph shows at first
const TURNED = 1.6; // a change of the aspect ratio by this factor places a small graph anew
const PER_FRAME = 3000; // changed links that are drawn in one frame while dragging
const { EdgeArrowProgram, EdgeLineProgram, EdgeRectangleProgram } = window.Sigma.rendering;
const LINK_PROGRAMS = { arrow: EdgeArrowProgram, line: EdgeRectangleProgram };
const DIFFERENCES = { [BEGUN]: "begun", [ENDED]: "ended", [RETIRED]: "retired" };

let sigma = null;
let drawn = null; // sigma's graph
let hues = new Uint8Array(0);
let shownState = new Uint8Array(0); // the drawn state of each fact
let linkState = new Uint8Array(0); // the state of each link, 0 if none of its facts is shown
let linkPredicate = new Int32Array(0);
let linkFacts = new Uint32Array(0); // the number of shown facts of each link
let lively = new Int32Array(0); // the number of shown facts of each entity
let dirty = new Set();
let lit = { entities: new Set(), links: new Set() };
let handlers = {};
let aspect = 1; // width by height of the pane that the entities were placed for

// Thin links cannot be hovered or clicked, so they are not drawn a second time for picking.
class ThinProgram extends EdgeLineProgram {
  constructor(context, _picking, renderer) {
    super(context, null, renderer);
  }
}

// Compiling the shader of a kind of link takes long: thin links are compiled while the graph loads, the others when
// they are first needed.
class Drawing extends window.Sigma {
  registerEdgeProgram(kind, program) {
    return kind === "thin" ? super.registerEdgeProgram(kind, program) : this;
  }

  // When the pointer enters or leaves an entity, sigma would draw the names of links too: they stay as they are placed.
  scheduleHighlightedNodesRender() {
    this.renderHighlightedNodesFrame ??= requestAnimationFrame(() => {
      this.renderHighlightedNodesFrame = null;
      this.renderHighlightedNodes();
    });
  }

  drawLinksAs(kind) {
    if (!this.edgePrograms[kind]) super.registerEdgeProgram(kind, LINK_PROGRAMS[kind]);
    this.setSetting("defaultEdgeType", kind);
  }
}

export const view = { get sigma() { return sigma; }, labels, positionOf };

export function startGraph(stage, areas, on) {
  handlers = on;
  const font = getComputedStyle(document.body).fontFamily;
  drawn = new Graphology({ multi: true, type: "directed" });
  sigma = new Drawing(drawn, stage, {
    allowInvalidContainer: true, renderLabels: true, labelFont: font, labelSize: 12.5, labelWeight: "500",
    labelColor: { attribute: "labelColor" }, labelDensity: 1, labelGridCellSize: 90, labelRenderedSizeThreshold: 5, zIndex: true,
    edgeProgramClasses: { thin: ThinProgram }, defaultEdgeType: "thin", minEdgeThickness: 0.8, stagePadding: 44, minCameraRatio: 0.02, maxCameraRatio: 4, enableEdgeEvents: true,
    nodeReducer: reduceNode, edgeReducer: reduceEdge, defaultDrawNodeLabel: takeName, defaultDrawEdgeLabel: takePredicate, defaultDrawNodeHover: drawHover, inertiaDuration: 0,
  });
  sigma.on("clickNode", ({ node }) => handlers.entity(Number(node)));
  sigma.on("doubleClickNode", (event) => { event.preventSigmaDefault(); handlers.near(Number(event.node)); });
  sigma.on("clickEdge", ({ edge }) => handlers.link(Number(edge)));
  sigma.on("enterNode", () => { stage.style.cursor = "pointer"; });
  const leaveNode = () => { stage.style.cursor = ""; sigma.hoveredNode = null; sigma.scheduleHighlightedNodesRender(); };
  sigma.on("leaveNode", leaveNode);
  stage.addEventListener("pointerleave", leaveNode); // sigma keeps the ring if the pointer leaves the graph
  sigma.on("enterEdge", () => { stage.style.cursor = "pointer"; });
  sigma.on("leaveEdge", () => { stage.style.cursor = ""; });
  sigma.on("afterRender", () => drawLabels(sigma, drawn, font));
  sigma.on("afterRender", () => drawAreas(areas, sigma, drawn, { wanted: state.areas, chosen: state.view === "entity" ? look.graph.entityPlace.get(state.id) : undefined }));
  new ResizeObserver(() => { if (stage.clientWidth) resize(); }).observe(stage);
  onLook("graph", load);
  onLook("time", redraw);
  onLook("doubts", () => recolour());
  onTheme(() => recolour());
}

// A small graph is placed anew in a pane of another shape, such as the half of a phone above the time plane.
function resize() {
  sigma.resize().refresh();
  const { width, height } = sigma.getDimensions();
  const turned = Math.max(width / height / aspect, (aspect * height) / width);
  if (drawn.order && drawn.order <= SMALL && turned > TURNED) arrange(firstPositions(look.graph, null));
}

function load() {
  const { graph } = look;
  const before = new Map();
  drawn.forEachNode((_, attributes) => before.set(attributes.entity, [attributes.x, attributes.y]));
  const kept = before.size > 0 && graph.entities.id.some((id) => before.has(id));
  const same = kept ? keepPositions(graph, before) : null;
  const positions = same ?? firstPositions(graph, kept ? before : null);
  const next = new Graphology({ multi: true, type: "directed" });
  const { hues: ranked } = predicateHues(graph);
  hues = ranked;
  linkState = new Uint8Array(graph.links.length);
  linkPredicate = new Int32Array(graph.links.length).fill(-1);
  linkFacts = new Uint32Array(graph.links.length);
  lively = new Int32Array(graph.entities.id.length);
  shownState = new Uint8Array(graph.size);
  dirty = new Set();
  const most = Math.max(4, ...sample(graph.mentions));
  const large = graph.entities.id.length > 2000;
  for (let i = 0; i < graph.entities.id.length; i++) {
    const part = Math.sqrt(Math.min(1, graph.mentions[i] / most));
    next.addNode(i, { x: positions[2 * i], y: positions[2 * i + 1], size: large ? 1.6 + 9 * part : 4 + 11 * part, entity: graph.entities.id[i], label: graph.entities.name[i] });
  }
  for (let fact = 0; fact < graph.size; fact++) count(fact, look.states[fact]);
  for (let link = 0; link < graph.links.length; link++) settle(link);
  dirty.clear();
  const vast = graph.links.length > VAST;
  const coarse = vast && !kept;
  addLinks(next, coarse ? findStrongest() : [...linkState.keys()]);
  drawn = next;
  lit = { entities: new Set(), links: new Set() };
  sigma.setSetting("hideEdgesOnMove", graph.links.length > 8000);
  sigma.setSetting("renderEdgeLabels", true);
  sigma.setSetting("labelDensity", graph.entities.id.length <= FEW ? 100 : 1);
  sigma.setSetting("labelRenderedSizeThreshold", large ? 6 : 3);
  if (graph.links.both.some(Boolean) && graph.links.length <= MANY) sigma.drawLinksAs("line");
  sigma.drawLinksAs(vast ? "thin" : graph.links.length > MANY ? "line" : "arrow");
  sigma.setSetting("enableEdgeEvents", !vast);
  frameShown(positions);
  if (!kept) sigma.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
  sigma.setGraph(next); // draws it, once
  performance.mark("graph drawn");
  if (coarse) afterFrame(() => drawWhole(next, positions, kept), 300);
  else if (same) stop();
  else arrange(positions, kept);
}

function addLinks(drawing, links) {
  const { source, target, both, length } = look.graph.links;
  for (const link of links) drawing.addEdgeWithKey(link, source[link], target[link], both[link] && length <= MANY ? { i: link, type: "line" } : { i: link });
}

// Return the shown links between the entities with the most mentions.
function findStrongest() {
  const { links, mentions } = look.graph;
  const weights = new Float64Array(linkState.length).fill(-1);
  for (let link = 0; link < weights.length; link++) if (linkState[link]) weights[link] = Math.min(mentions[links.source[link]], mentions[links.target[link]]);
  const least = Math.max(0, weights.slice().sort()[weights.length - COARSE]);
  const strongest = [];
  for (let link = 0; link < weights.length && strongest.length < 2 * COARSE; link++) if (weights[link] >= least) strongest.push(link);
  return strongest;
}

// Add the links that were left out at first so that a vast graph appeared sooner.
function drawWhole(shown, positions, kept) {
  if (drawn !== shown) return;
  const whole = new Graphology({ multi: true, type: "directed" });
  shown.forEachNode((node, attributes) => whole.addNode(node, attributes));
  addLinks(whole, linkState.keys());
  drawn = whole;
  sigma.once("afterRender", () => performance.mark("links drawn"));
  sigma.setGraph(whole);
  arrange(positions, kept);
}

function sample(numbers) {
  if (numbers.length < 5000) return numbers;
  return [numbers.reduce((most, number) => Math.max(most, number), 0)];
}

export function arrange(positions, kept = false) {
  const { graph } = look;
  const large = graph.entities.id.length > 2000;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || navigator.webdriver;
  const shown = drawn;
  if (!graph.entities.id.length) return stop();
  const rounds = large ? (kept ? 60 : 120) : 600;
  const { width, height } = sigma.getDimensions();
  aspect = width / height;
  place(graph, positions, { rounds, aspect, every: large || still ? 1500 : 60 }, ({ positions: moved, done }) => {
    if (drawn !== shown || (still && !done && !large)) return;
    drawn.updateEachNodeAttributes((node, attributes) => {
      attributes.x = moved[2 * Number(node)];
      attributes.y = moved[2 * Number(node) + 1];
      return attributes;
    }, { attributes: ["x", "y"] });
    frameShown(moved);
    if (done) sigma.once("afterRender", () => { document.documentElement.dataset.placed = "true"; });
  });
}

// Zoom so that a small graph fills the view around its most connected entity, which is at (0, 0); of others, so that
// the entities with facts fill it.
function frameShown(positions) {
  const box = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
  const small = lively.length <= SMALL;
  for (let i = 0; i < lively.length; i++) {
    if (!lively[i] && !small) continue;
    [box.x, box.y].forEach((range, axis) => {
      range[0] = Math.min(range[0], positions[2 * i + axis]);
      range[1] = Math.max(range[1], positions[2 * i + axis]);
    });
  }
  if (small) for (const range of Object.values(box)) range[0] = -(range[1] = Math.max(range[1], -range[0]));
  sigma.setCustomBBox(box.x[0] < box.x[1] && box.y[0] < box.y[1] ? box : null);
}

// Count a fact for its entities, and mark its links for an update.
function count(fact, next) {
  const { graph } = look;
  const before = shownState[fact];
  shownState[fact] = next;
  if (Boolean(before) !== Boolean(next)) {
    const step = next ? 1 : -1;
    if (graph.subject[fact] >= 0) lively[graph.subject[fact]] += step;
    for (const object of graph.facts.object[fact]) lively[object] += step;
  }
  const { starts, items } = graph.links.ofFact;
  for (let i = starts[fact]; i < starts[fact + 1]; i++) dirty.add(items[i]);
}

// Compute the state of a link from its facts: differences take precedence over facts that hold.
function settle(link) {
  const { graph } = look;
  let best = 0;
  let predicate = -1;
  let number = 0;
  const { starts, items } = graph.links.facts; // faster than `of`, which makes an object for each link
  for (let i = starts[link]; i < starts[link + 1]; i++) {
    const fact = items[i];
    const now = shownState[fact];
    if (now) number += 1;
    if (now > best || (now && predicate < 0)) { best = Math.max(best, now); predicate = graph.predicate[fact]; }
  }
  linkState[link] = best;
  linkPredicate[link] = predicate;
  linkFacts[link] = number;
}

function redraw() {
  const { states, graph } = look;
  if (shownState.length !== states.length || !sigma) return;
  const touched = new Set();
  for (let fact = 0; fact < states.length; fact++) {
    if (shownState[fact] === states[fact]) continue;
    const before = Boolean(shownState[fact]);
    count(fact, states[fact]);
    if (before !== Boolean(states[fact])) {
      touched.add(graph.subject[fact]);
      for (const object of graph.facts.object[fact]) touched.add(object);
    }
  }
  touched.delete(-1);
  drawSome(touched);
}

let next = 0;
function drawSome(touched) {
  cancelAnimationFrame(next);
  const links = [];
  for (const link of dirty) {
    if (links.length === PER_FRAME) break;
    dirty.delete(link);
    settle(link);
    if (drawn.hasEdge(link)) links.push(String(link));
  }
  const nodes = [...touched].map(String);
  if (links.length || nodes.length) sigma.refresh({ partialGraph: { nodes, edges: links }, skipIndexation: isLarge(), schedule: true });
  if (dirty.size) next = requestAnimationFrame(() => drawSome(new Set()));
}

function recolour() {
  if (sigma && look.graph.entities.id.length) sigma.refresh({ skipIndexation: isLarge() });
}

// Without a new index, entities that were without facts get no name: left out where indexing takes long.
function isLarge() {
  return drawn.order > MANY;
}

function reduceNode(node, attributes) {
  const i = Number(node);
  const { graph } = look;
  const hidden = (state.types.includes(graph.types[graph.entityType[i]]) && !(lively[i] && look.isOneType)) || (state.focus && !lively[i] && graph.entities.id[i] !== state.focus);
  const chosen = state.view === "entity" && state.id === attributes.entity;
  const faded = (lit.entities.size && !lit.entities.has(i)) || !lively[i];
  return {
    ...attributes, hidden, size: lively[i] ? attributes.size : Math.min(4, attributes.size), color: faded ? colour("ghost") : typeColour(graph.types, graph.entityType[i]),
    label: faded && !chosen ? null : attributes.label, labelColor: colour("text"),
    forceLabel: chosen || lit.entities.has(i), zIndex: faded ? 0 : chosen ? 3 : 2,
  };
}

function reduceEdge(edge, attributes) {
  const link = attributes.i;
  const best = linkState[link];
  const { graph } = look;
  if (!best) return { ...attributes, hidden: true };
  const inLight = lit.links.has(link);
  const dark = lit.links.size || lit.entities.size ? !inLight : false;
  let shade = DIFFERENCES[best] ? colour(DIFFERENCES[best]) : colour(`predicate-${hues[linkPredicate[link]]}`);
  let size = (best === HOLDS ? 1.8 : 2.4) + Math.min(3, 0.9 * Math.log2(linkFacts[link]));
  if (best === HOLDS && isDoubtfulLink(link)) { shade = colour("doubtful"); size = 2; }
  if (dark) shade = colour("ghost");
  if (inLight) { size = 3; shade = DIFFERENCES[best] ? shade : colour("accent"); }
  const label = !dark && (inLight || graph.links.length <= FEW || besideChosen(link)) ? nameOf(link) : null;
  return { ...attributes, hidden: false, color: shade, size, label, short: linkFacts[link] > 1 && String(linkFacts[link]), labelColor: colour("soft"), zIndex: inLight ? 2 : best === HOLDS ? 0 : 1, forceLabel: inLight };
}

// Return the predicate of a link, or how many facts it stands for.
function nameOf(link) {
  const { graph } = look;
  if (linkFacts[link] > 1) return countWords("facts", linkFacts[link]);
  return wordsOf(graph.predicates[linkPredicate[link]]);
}

// Return whether a link belongs to the entity whose card is open: if these are few, their predicates are shown.
function besideChosen(link) {
  const { graph } = look;
  const chosen = state.view === "entity" ? graph.entityPlace.get(state.id) : undefined;
  return chosen !== undefined && lively[chosen] <= 16 && (graph.links.source[link] === chosen || graph.links.target[link] === chosen);
}

// Return whether a shown fact of a link is doubtful, or disputed by a review that waits.
function isDoubtfulLink(link) {
  const { graph, doubtsA, states } = look;
  const { starts, items } = graph.links.facts;
  for (let i = starts[link]; i < starts[link + 1]; i++) if (states[items[i]] && (graph.disputed[items[i]] || (doubtsA.size && doubtsA.has(graph.facts.id[items[i]])))) return true;
  return false;
}

export function wordsOf(predicate) {
  return predicate.replaceAll("_", " ").toLowerCase();
}

function drawHover(context, data, settings) {
  if (!data.label) return;
  context.font = `${settings.labelWeight} ${settings.labelSize}px ${settings.labelFont}`;
  const width = context.measureText(data.label).width + 10;
  context.strokeStyle = colour("accent");
  context.lineWidth = 2;
  context.beginPath();
  context.arc(data.x, data.y, data.size + 2, 0, Math.PI * 2);
  context.stroke();
  if (labels.shown.some((name) => name.box && name.text === data.label)) return;
  context.fillStyle = colour("surface");
  context.strokeStyle = colour("line-strong");
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(data.x + data.size + 3, data.y - 10, width, 20, 4);
  context.fill();
  context.stroke();
  context.fillStyle = colour("text");
  context.fillText(data.label, data.x + data.size + 8, data.y + settings.labelSize / 3);
}

// Highlight entities and links, and dim the rest. Without arguments, dim none.
export function lightUp(entities = [], links = []) {
  if (!entities.length && !links.length && !lit.entities.size && !lit.links.size) return;
  lit = { entities: new Set(entities), links: new Set(links) };
  recolour();
}

// Draw the graph for another view. Only the view of a fact keeps what the view before it highlighted.
export function choose() {
  if (state.view !== "fact") lit = { entities: new Set(), links: new Set() };
  recolour();
}

export function centre(entity) {
  const data = sigma?.getNodeDisplayData(String(entity));
  if (!data || look.graph.entities.id.length < 150) return; // a small graph is visible as a whole
  const camera = sigma.getCamera();
  const next = { x: data.x, y: data.y, ratio: Math.min(camera.ratio, 0.25) };
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) camera.setState(next);
  else camera.animate(next, { duration: 300 });
}

export function zoom(factor) {
  const camera = sigma.getCamera();
  if (factor === 0) camera.animatedReset({ duration: 200 });
  else camera.animate({ ratio: camera.ratio / factor }, { duration: 150 });
}

// Return the position of an entity, or of the middle of a link, in pixels.
function positionOf(entity) {
  const { x, y } = drawn.getNodeAttributes(String(entity));
  return sigma.graphToViewport({ x, y });
}
