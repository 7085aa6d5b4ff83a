// The graph of a namespace in typed arrays, and which facts hold at a point of both clocks (valid time, transaction time).

import { request } from "./api.js";
import { FAR } from "./dates.js";
import { columnsPath } from "./early.js";

export const HOLDS = 1; // holds at A, and at B when comparing
export const BEGUN = 2; // holds at B but not at A
export const ENDED = 3; // holds at A, has ended at B
export const RETIRED = 4; // holds at A, is not believed at B
export const STATE_NAMES = ["", "holds", "begun", "ended", "retired"];
const OVER = 2; // believed, but does not hold at that time

export class Graph {
  constructor(columns) {
    const { entities, facts, beliefs } = columns;
    Object.assign(this, { types: columns.types, predicates: columns.predicates, communities: columns.communities });
    this.now = columns.now;
    this.entities = entities;
    this.facts = { id: facts.id, object: objectsOf(facts) };
    this.entityType = entities.type;
    this.mentions = entities.mentions;
    this.subject = facts.subject;
    this.predicate = facts.predicate;
    this.kind = facts.kind;
    this.confidence = facts.confidence;
    this.beliefFact = beliefs.fact;
    for (const name of ["valid", "from", "until", "created", "expired", "proposed"]) this[name] = beliefs[name];
    this.disputed = mark(facts.id.length, columns.disputed);
    this.premises = [...columns.premises.facts].map((fact, place) => [fact, columns.premises.premises[place]]);
    this.sources = sourcesOf(columns.sources);
    this.entityPlace = places(entities.id);
    this.beliefs = group(this.beliefFact, facts.id.length);
    this.factsOf = groupEnds(this);
    this.trust = findTrust(this);
    this.links = linkPairs(this);
  }

  get factPlace() {
    this.placesOfFacts ??= places(this.facts.id);
    return this.placesOfFacts;
  }

  get size() {
    return this.facts.id.length;
  }

  // Write the status of each fact at (time, believed) to `into`: 1 holds, 2 believed but does not hold then, 0 neither.
  stand(time, believed, unreviewed, into) {
    into.fill(0);
    const { beliefFact, from, until, created, expired, proposed } = this;
    for (let i = 0; i < beliefFact.length; i++) {
      if (created[i] > believed || expired[i] <= believed || (proposed[i] && !unreviewed)) continue;
      const fact = beliefFact[i];
      if (from[i] <= time && time < until[i]) into[fact] = 1;
      else if (!into[fact]) into[fact] = OVER;
    }
    return into;
  }

  // Write the difference of each fact between A and B to `into`: HOLDS, BEGUN, ENDED, RETIRED or 0.
  compare(atA, atB, into) {
    for (let i = 0; i < into.length; i++) {
      if (atA[i] === 1) into[i] = atB[i] === 1 ? HOLDS : atB[i] === OVER ? ENDED : RETIRED;
      else into[i] = atB[i] === 1 ? BEGUN : 0;
    }
    return into;
  }

  name(entity) {
    return entity < 0 ? "?" : this.entities.name[entity];
  }

  // Return the belief to show for a fact at a point: the one that holds, else the latest believed one, else the last.
  beliefAt(fact, time, believed) {
    let best = -1;
    let bestRank = -1;
    for (const belief of this.beliefs.of(fact)) {
      const held = this.created[belief] <= believed && believed < this.expired[belief];
      const rank = (held ? 2 : 0) + (this.from[belief] <= time && time < this.until[belief] ? 1 : 0);
      if (rank > bestRank || (rank === bestRank && this.from[belief] > this.from[best])) [best, bestRank] = [belief, rank];
    }
    return best;
  }

  // Return the indexes of the premises of a fact, and of the facts that rest on it.
  premisesOf(fact) {
    return this.premises.filter(([one]) => one === fact).map(([, premise]) => premise);
  }

  restingOn(fact) {
    return this.premises.filter(([, premise]) => premise === fact).map(([one]) => one);
  }
}

// Lists of indexes by key, stored in two arrays.
class Grouped {
  constructor(starts, items) {
    Object.assign(this, { starts, items });
  }

  of(key) {
    return this.items.subarray(this.starts[key], this.starts[key + 1]);
  }
}

function group(keys, length) {
  const starts = new Uint32Array(length + 1);
  for (let i = 0; i < keys.length; i++) starts[keys[i] + 1]++;
  for (let i = 0; i < length; i++) starts[i + 1] += starts[i];
  const next = starts.slice();
  const items = new Uint32Array(keys.length);
  for (let i = 0; i < keys.length; i++) items[next[keys[i]]++] = i;
  return new Grouped(starts, items);
}

// Return the objects of each fact, as indexes of entities.
function objectsOf({ id, withObject, object }) {
  const objects = id.map(() => []);
  for (let i = 0; i < object.length; i++) objects[withObject[i]].push(object[i]);
  return objects;
}

function sourcesOf({ speaker, thread, source, trust, by, facts }) {
  const stated = group(by, speaker.length);
  stated.items = stated.items.map((place) => facts[place]);
  return speaker.map((_, i) => ({ speaker: speaker[i], thread: thread[i], source: source[i], trust: trust[i], facts: stated.of(i) }));
}

function groupEnds(graph) {
  const keys = [];
  const facts = [];
  for (let fact = 0; fact < graph.size; fact++) {
    const subject = graph.subject[fact];
    const objects = graph.facts.object[fact];
    if (subject >= 0) {
      keys.push(subject);
      facts.push(fact);
    }
    for (let i = 0; i < objects.length; i++) {
      if (objects[i] === subject || objects.indexOf(objects[i]) < i) continue;
      keys.push(objects[i]);
      facts.push(fact);
    }
  }
  const grouped = group(Uint32Array.from(keys), graph.entities.id.length);
  grouped.items = grouped.items.map((place) => facts[place]);
  return grouped;
}

// Make one link for all facts between the same two entities; `both` marks links with facts in both directions.
function linkPairs(graph) {
  const places = new Map();
  const sources = [];
  const targets = [];
  const both = [];
  const linkOf = [];
  const factOf = [];
  for (let fact = 0; fact < graph.size; fact++) {
    const subject = graph.subject[fact];
    if (subject < 0) continue;
    for (const object of graph.facts.object[fact]) {
      const key = Math.min(subject, object) * 4194304 + Math.max(subject, object);
      let link = places.get(key);
      if (link === undefined) {
        link = sources.length;
        places.set(key, link);
        sources.push(subject);
        targets.push(object);
        both.push(0);
      } else if (sources[link] !== subject) both[link] = 1;
      linkOf.push(link);
      factOf.push(fact);
    }
  }
  const facts = group(Uint32Array.from(linkOf), sources.length);
  facts.items = facts.items.map((place) => factOf[place]);
  const links = group(Uint32Array.from(factOf), graph.size);
  links.items = links.items.map((place) => linkOf[place]);
  return { source: Uint32Array.from(sources), target: Uint32Array.from(targets), both: Uint8Array.from(both), facts, ofFact: links, length: sources.length };
}

function findTrust(graph) {
  const trust = new Float64Array(graph.size).fill(-1);
  for (const source of graph.sources) for (const fact of source.facts) if (source.trust > trust[fact]) trust[fact] = source.trust;
  return trust.map((value) => (value < 0 ? 1 : value));
}

function places(ids) {
  return new Map(ids.map((id, place) => [id, place]));
}

function mark(length, chosen) {
  const marks = new Uint8Array(length);
  for (const place of chosen) marks[place] = 1;
  return marks;
}

const kept = new Map();

// Read the graph of a namespace, from the response `sent` if given; return null if the graph has not changed.
export async function readGraph(ns, sent = null) {
  const before = kept.get(ns);
  const headers = before ? { "If-None-Match": before } : {};
  const answer = (await sent) ?? (await request("GET", columnsPath(ns), { headers }));
  if (answer.status === 304) return null;
  kept.clear();
  kept.set(ns, answer.headers.get("ETag"));
  return new Graph(decode(await answer.arrayBuffer()));
}

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };

// Unpack a JSON text and the arrays that it refers to (see `pack` in columns.py).
function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const columns = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const first = 8 + Math.ceil(length / 8) * 8;
  for (const part of [columns, ...Object.values(columns)]) {
    for (const [name, value] of Object.entries(part)) if (value?.array) part[name] = new ARRAYS[value.array](buffer, first + value.start, value.length);
  }
  return columns;
}

export function forgetKept() {
  kept.clear();
}

// Return the range of valid time of all beliefs, without the outermost hundredth, extended to the present.
export function worldRange(graph, now) {
  const columns = [graph.valid, graph.from, graph.until];
  const all = new Float64Array(3 * graph.valid.length);
  columns.forEach((column, place) => all.set(column, place * column.length));
  const times = all.filter((time) => time > -FAR && time < FAR).sort();
  const cut = times.length > 400 ? Math.floor(times.length / 200) : 0;
  const first = times.length ? times[cut] : now - 365 * 86400000;
  const last = Math.max(times.length ? times[times.length - 1 - cut] : now, now);
  const margin = Math.max((last - first) * 0.04, 3600000);
  return [first - margin, last + margin];
}
