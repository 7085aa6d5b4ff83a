// The current points A and B, the facts that pass the filters, and the status of each fact; updated while dragging.

import { read } from "./api.js";
import { BEGUN, ENDED, Graph, HOLDS, RETIRED } from "./data.js";
import { state, subscribe } from "./store.js";

const none = [];
export const EMPTY = new Graph({
  now: Date.now(), types: none, predicates: none, communities: none, disputed: none,
  sources: { speaker: none, thread: none, source: none, trust: none, by: none, facts: none },
  premises: { facts: none, premises: none },
  entities: { id: none, name: none, type: none, mentions: none },
  facts: { id: none, confidence: none, predicate: none, kind: none, subject: none, withObject: none, object: none },
  beliefs: { fact: none, valid: none, from: none, until: none, created: none, expired: none, proposed: none },
});

export const look = {
  graph: EMPTY,
  passes: new Uint8Array(0), // the facts that pass the filters
  atA: new Uint8Array(0),
  atB: new Uint8Array(0),
  isOneType: false, // whether one type of entities is shown alone: then with all that it is linked to
  states: new Uint8Array(0), // HOLDS, BEGUN, ENDED, RETIRED, or 0
  doubtsA: new Map(), // the times since when facts are doubtful, by fact id
  doubtsB: new Map(),
};
const listeners = { time: [], graph: [], doubts: [] };

export function onLook(kind, run) {
  listeners[kind].push(run);
}

function tell(kind) {
  for (const run of listeners[kind]) run();
}

export const now = () => Math.max(look.graph.now, Date.now());
export const pointA = () => ({ time: state.at ?? now(), believed: state.believed ?? now() });
export const pointB = () => ({ time: state.at2 ?? now(), believed: state.believed2 ?? now() });

export function setGraph(graph) {
  look.graph = graph;
  for (const name of ["passes", "atA", "atB", "states"]) look[name] = new Uint8Array(graph.size);
  filter();
  stand();
  tell("graph");
  tell("time");
  readDoubts();
}

// Compute the status of all facts at A, and the differences to B.
function stand() {
  const { graph, atA, atB, states, passes } = look;
  const a = pointA();
  graph.stand(a.time, a.believed, state.unreviewed, atA);
  if (state.compare) {
    const b = pointB();
    graph.compare(atA, graph.stand(b.time, b.believed, state.unreviewed, atB), states);
  } else {
    for (let i = 0; i < states.length; i++) states[i] = atA[i] === 1 ? HOLDS : 0;
  }
  for (let i = 0; i < states.length; i++) if (!passes[i]) states[i] = 0;
}

export function anyFilter() {
  return ["types", "predicates", "kinds"].some((name) => state[name].length) || state.speaker || state.thread || state.source || state.trust > 0 || state.confidence > 0;
}

function filter() {
  const { graph, passes } = look;
  const hiddenTypes = new Set(state.types);
  const hiddenPredicates = new Set(state.predicates);
  const hiddenKinds = new Set(state.kinds.map((kind) => ["state", "event", "plan"].indexOf(kind)));
  const typeHidden = graph.types.map((type) => hiddenTypes.has(type));
  const predicateHidden = graph.predicates.map((predicate) => hiddenPredicates.has(predicate));
  const stated = findStated(graph);
  look.isOneType = typeHidden.filter((hidden) => !hidden).length === 1;
  const seen = (entity) => entity >= 0 && !typeHidden[graph.entityType[entity]];
  for (let fact = 0; fact < graph.size; fact++) {
    const subject = graph.subject[fact];
    const objects = graph.facts.object[fact];
    passes[fact] = Number(
      (look.isOneType ? [subject, ...objects].some(seen) : seen(subject) && (!objects.length || objects.some(seen))) && !predicateHidden[graph.predicate[fact]] &&
      !hiddenKinds.has(graph.kind[fact]) && graph.trust[fact] >= state.trust && graph.confidence[fact] >= state.confidence && (!stated || stated[fact]),
    );
  }
  if (state.focus) keepNear(graph, passes);
}

// Return the facts stated by the selected speaker, thread and source; null if none is selected.
function findStated(graph) {
  const chosen = ["speaker", "thread", "source"].filter((name) => state[name]);
  if (!chosen.length) return null;
  const stated = new Uint8Array(graph.size);
  for (const source of graph.sources) if (chosen.every((name) => (source[name] ?? "") === state[name])) for (const fact of source.facts) stated[fact] = 1;
  return stated;
}

// Keep only the facts within so many steps of the focused entity.
function keepNear(graph, passes) {
  const first = graph.entityPlace.get(state.focus);
  if (first === undefined) return;
  const near = new Uint8Array(graph.size);
  const seen = new Set([first]);
  let edge = [first];
  for (let step = 0; step < state.steps; step++) {
    const next = [];
    for (const entity of edge) {
      for (const fact of graph.factsOf.of(entity)) {
        if (!passes[fact] || near[fact]) continue;
        near[fact] = 1;
        for (const end of [graph.subject[fact], ...graph.facts.object[fact]]) if (end >= 0 && !seen.has(end)) { seen.add(end); next.push(end); }
      }
    }
    edge = next;
  }
  for (let fact = 0; fact < graph.size; fact++) passes[fact] = near[fact];
}

export const isDoubtful = (fact) => look.graph.premises.length > 0 && look.doubtsA.has(look.graph.facts.id[fact]);

// Return the facts for each kind of difference between A and B.
export function listChanges() {
  const lists = { begun: [], ended: [], retired: [], doubtful: [] };
  const { graph, states, doubtsA, doubtsB, passes } = look;
  for (let fact = 0; fact < states.length; fact++) {
    if (states[fact] === BEGUN) lists.begun.push(fact);
    else if (states[fact] === ENDED) lists.ended.push(fact);
    else if (states[fact] === RETIRED) lists.retired.push(fact);
  }
  for (const id of doubtsB.keys()) {
    const fact = graph.factPlace.get(id);
    if (fact !== undefined && passes[fact] && !doubtsA.has(id)) lists.doubtful.push(fact);
  }
  return lists;
}

export function countChanges() {
  const counts = { holds: 0, begun: 0, ended: 0, retired: 0, doubtful: 0 };
  const { states } = look;
  const totals = [0, 0, 0, 0, 0];
  for (let i = 0; i < states.length; i++) totals[states[i]]++;
  [, counts.holds, counts.begun, counts.ended, counts.retired] = totals;
  if (look.doubtsB.size) counts.doubtful = listChanges().doubtful.length;
  return counts;
}

let asking = 0;

// The server computes which facts are doubtful, from their premises: ask only when dragging has stopped.
function readDoubts() {
  clearTimeout(asking);
  if (!look.graph.premises.length) {
    if (look.doubtsA.size || look.doubtsB.size) { look.doubtsA = new Map(); look.doubtsB = new Map(); tell("doubts"); }
    return;
  }
  asking = setTimeout(async () => {
    const { graph } = look;
    const ask = async ({ time, believed }) => new Map(Object.entries(await read("explorer/doubts", { as_of: Math.round(time), believed_at: Math.round(believed) })));
    try {
      const [a, b] = await Promise.all([ask(pointA()), state.compare ? ask(pointB()) : new Map()]);
      if (graph !== look.graph) return;
      look.doubtsA = a;
      look.doubtsB = b;
      tell("doubts");
    } catch { /* the next look asks again */ }
  }, 120);
}

let pending = false;

// Runs at most once a frame, however often the pointer moves.
function lookAgain() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    stand();
    tell("time");
    readDoubts();
  });
}

subscribe(["at", "believed", "at2", "believed2", "compare", "unreviewed"], lookAgain);
subscribe(["types", "predicates", "kinds", "speaker", "thread", "source", "trust", "confidence", "focus", "steps"], () => {
  filter();
  lookAgain();
});
