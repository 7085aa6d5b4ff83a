// The axis of transaction time: linear in time, or with equal distances between changes.

import { DAY, FAR, findTicks, showClock, showDay } from "./dates.js";

// If most was learned at once, as by importing a chat, a linear axis would show a single line: use changes.
export function axisOf(columns, scale, present = Date.now()) {
  const instants = distinct(columns);
  if (!instants.length) instants.push(present - DAY);
  const chosen = scale || (isEven(instants, present) ? "time" : "changes");
  return chosen === "time" ? byTime(instants, present) : byChanges(instants, present);
}

function distinct(columns) {
  const all = [];
  for (const column of columns) for (const time of column) if (time > -FAR && time < FAR) all.push(time);
  const sorted = Float64Array.from(all).sort();
  return [...sorted.filter((time, place) => place === 0 || time !== sorted[place - 1])];
}

function isEven(instants, present) {
  if (findBrief(instants)) return false;
  const span = Math.max(1, present - instants[0]);
  const places = instants.map((time) => Math.floor((20 * (time - instants[0])) / span));
  return new Set(places).size >= Math.min(6, instants.length);
}

// Return the first and last instant if all was learned within two minutes: clock times would then say little.
function findBrief(instants) {
  const [first, last] = [instants[0], instants[instants.length - 1]];
  return last - first < 120000 ? [first, last] : null;
}

function byTime(instants, present) {
  const last = Math.max(present, instants[instants.length - 1]);
  const first = instants[0] - 0.03 * Math.max(60000, last - instants[0]);
  const span = last - first;
  return {
    kind: "time",
    place: (time) => Math.max(0, Math.min(1, (time - first) / span)),
    time: (place) => first + place * span,
    ticks: (many) => findTicks(first, last, many).map(({ at, text }) => ({ place: (at - first) / span, text })).filter(({ place }) => place > 0.04 && place < 0.96),
  };
}

function byChanges(instants, present) {
  const length = instants.length + 1;
  const place = (time) => {
    if (time >= present) return 1;
    let [low, high] = [0, instants.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (instants[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low / length;
  };
  const time = (where) => {
    const number = Math.round(where * length);
    if (number >= length) return present;
    return number <= 0 ? instants[0] - 1 : instants[number - 1];
  };
  return {
    kind: "changes",
    brief: findBrief(instants),
    place,
    time,
    ticks: (many) => tickChanges(instants, length, many),
  };
}

function tickChanges(instants, length, many) {
  const step = Math.max(1, Math.ceil(instants.length / many));
  const sameDay = instants[instants.length - 1] - instants[0] < DAY;
  const ticks = [];
  for (let number = 0; number < instants.length; number += step) {
    const text = sameDay ? showClock(instants[number]) : showDay(instants[number]);
    const place = (number + 1) / length;
    if (place < 0.97 && text !== ticks[ticks.length - 1]?.text) ticks.push({ place, text });
  }
  return ticks;
}
