// Positions of the entities: first near their community, then as the worker computes them, small graphs part by part.

import { findParts, pack } from "./pack.js";

export const SMALL = 600; // up to so many entities, the parts of a graph are packed around the most connected entity

const worker = startWorker();
let onMoved = () => {};

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

export function place(graph, positions, { rounds, every, aspect }, moved) {
  const parts = graph.entities.id.length <= SMALL ? findParts(graph) : null;
  onMoved = (answer) => moved(parts ? { ...answer, positions: pack(answer.positions, parts, graph.links, aspect) } : answer);
  const sizes = Float32Array.from(graph.mentions, (count) => 1 + Math.sqrt(count));
  worker.postMessage({ positions, sizes, sources: graph.links.source, targets: graph.links.target, rounds, every });
}

export function stop() {
  worker.postMessage({ stop: true });
}
