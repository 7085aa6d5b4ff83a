// Positions of the entities: first near their community, then as the worker computes them, small graphs part by part.

import { findParts, middleLength, pack } from "./pack.js";

export const SMALL = 600; // up to so many entities, the parts of a graph are packed around the most connected entity

const MOST_ADDED = 0.2; // up to such a part of the placed entities may be new for these to stay where they are
const MOST_TRIED = 2e6; // up to so many distances are computed to find room for new entities

const worker = startWorker();
let onMoved = () => {};
let settled = new Set(); // the ids of the entities that were last placed together

function startWorker() {
  const url = new URL("layout-worker.js", import.meta.url).href;
  const policy = window.trustedTypes?.createPolicy("layout-worker", { createScriptURL: () => url });
  return new Worker(policy ? policy.createScriptURL("") : url);
}

worker.onmessage = ({ data }) => onMoved(data);

// Place communities on a spiral, with their entities close together; entities without a community come last.
export function firstPositions(graph, before) {
  const length = graph.entities.id.length;
  const positions = new Float32Array(length * 2);
  const seated = new Int32Array(length).fill(-1);
  const groups = graph.communities.map((community) => community.members);
  groups.forEach((members, place) => members.forEach((entity) => { if (seated[entity] < 0) seated[entity] = place; }));
  const turn = Math.PI * (3 - Math.sqrt(5));
  const spread = 10 * Math.sqrt(length + 1);
  const filled = new Uint32Array(groups.length + 1);
  const alone = Math.max(1, length - groups.reduce((sum, members) => sum + members.length, 0));
  for (let entity = 0; entity < length; entity++) {
    const old = before?.get(graph.entities.id[entity]);
    const seat = seated[entity];
    const number = filled[seat < 0 ? groups.length : seat]++;
    let [x, y] = [0, 0];
    if (seat >= 0) {
      const radius = groups.length > 1 ? spread * Math.sqrt((seat + 1) / groups.length) : 0;
      const own = 7 * Math.sqrt(number);
      x = radius * Math.cos(seat * turn) + own * Math.cos(number * turn);
      y = radius * Math.sin(seat * turn) + own * Math.sin(number * turn);
    } else {
      const radius = (groups.length ? 1.15 * spread : 0) + spread * Math.sqrt((number + 1) / alone);
      x = radius * Math.cos(number * turn);
      y = radius * Math.sin(number * turn);
    }
    positions[2 * entity] = old ? old[0] : x;
    positions[2 * entity + 1] = old ? old[1] : y;
  }
  return positions;
}

// Return positions with each entity where it is in `before` (by id), and each new one beside those that it is linked to,
// or where there is most room; null if too many are new since all were placed together.
export function keepPositions({ entities, links }, before) {
  const positions = new Float32Array(entities.id.length * 2);
  const placed = [];
  const added = new Map();
  entities.id.forEach((id, entity) => {
    if (before.has(id)) { positions.set(before.get(id), 2 * entity); placed.push(entity); } else added.set(entity, []);
  });
  const fresh = entities.id.filter((id) => !settled.has(id)).length;
  if (!settled.size || !placed.length || fresh > Math.max(3, MOST_ADDED * settled.size) || added.size * entities.id.length * 16 > MOST_TRIED) return null;
  for (let link = 0; link < links.length; link++) {
    added.get(links.source[link])?.push(links.target[link]);
    added.get(links.target[link])?.push(links.source[link]);
  }
  const unit = middleLength(positions, links);
  while (added.size) {
    const known = (entity) => added.get(entity).filter((other) => !added.has(other));
    const entity = [...added.keys()].reduce((best, one) => (known(one).length > known(best).length ? one : best));
    positions.set(findSpot(positions, known(entity), placed, unit), 2 * entity);
    placed.push(entity);
    added.delete(entity);
  }
  return positions;
}

// Return the spot with most room: on a circle around the middle of the entities `near`, or anywhere if there are none.
function findSpot(positions, near, placed, unit) {
  const column = (axis, of) => of.map((entity) => positions[2 * entity + axis]);
  const middle = [0, 1].map((axis) => column(axis, near).reduce((sum, value) => sum + value, 0) / near.length);
  const [left, low] = [0, 1].map((axis) => Math.min(...column(axis, placed)));
  const [width, height] = [Math.max(...column(0, placed)) - left, Math.max(...column(1, placed)) - low];
  const spots = Array.from({ length: 16 }, (_, turn) => (near.length
    ? [middle[0] + unit * Math.cos((turn * Math.PI) / 8), middle[1] + unit * Math.sin((turn * Math.PI) / 8)]
    : [left + (width * ((turn % 4) + 0.5)) / 4, low + (height * ((turn >> 2) + 0.5)) / 4]));
  const room = (spot) => placed.reduce((least, other) => Math.min(least, Math.hypot(spot[0] - positions[2 * other], spot[1] - positions[2 * other + 1])), Infinity);
  return spots.map((spot) => [room(spot), spot]).sort((a, b) => b[0] - a[0])[0][1];
}

export function place(graph, positions, { rounds, every, aspect }, moved) {
  const parts = graph.entities.id.length <= SMALL ? findParts(graph) : null;
  settled = new Set();
  onMoved = (answer) => {
    if (answer.done) settled = new Set(graph.entities.id);
    moved(parts ? { ...answer, positions: pack(answer.positions, parts, graph.links, aspect) } : answer);
  };
  const sizes = Float32Array.from(graph.mentions, (count) => 1 + Math.sqrt(count));
  worker.postMessage({ positions, sizes, sources: graph.links.source, targets: graph.links.target, rounds, every });
}

export function stop() {
  worker.postMessage({ stop: true });
}
