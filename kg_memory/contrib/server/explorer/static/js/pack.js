// Where the parts of a small graph lie: the most connected entity in the middle, the parts without a link to it around.

const SPREAD = 0.22; // the distance of single entities, in middle lengths of a link
const GAP = 0.4; // the distance of two parts, in the same unit
const STRETCH = 2; // how much wider or higher a graph becomes to fill its pane

// Return the connected parts as lists of entities: first that of the most connected entity, which begins its list, and
// last all single entities together.
export function findParts({ entities, links }) {
  const degrees = new Uint32Array(entities.id.length);
  const roots = Uint32Array.from(degrees, (_, place) => place);
  const find = (place) => {
    while (roots[place] !== place) place = roots[place] = roots[roots[place]];
    return place;
  };
  for (let link = 0; link < links.length; link++) {
    for (const end of [links.source[link], links.target[link]]) degrees[end]++;
    roots[find(links.source[link])] = find(links.target[link]);
  }
  const byRoot = new Map();
  const single = [];
  for (const entity of [...degrees.keys()].sort((a, b) => degrees[b] - degrees[a])) {
    if (!degrees[entity]) single.push(entity);
    else if (byRoot.has(find(entity))) byRoot.get(find(entity)).push(entity);
    else byRoot.set(find(entity), [entity]);
  }
  return { linked: [...byRoot.values()], single };
}

// Return the positions with all parts side by side, in a box that is `aspect` times as wide as high around (0, 0).
export function pack(positions, { linked, single }, links, aspect) {
  const unit = middleLength(positions, links);
  const seats = linked.map((part, place) => boxOf(part, positions, place === 0 && part.length > 3, GAP * unit));
  if (single.length) seats.push(gather(single, SPREAD * unit, aspect));
  seats.forEach((seat, place) => { if (place) settle(seat, seats.slice(0, place), aspect); });
  const [width, height] = [0, 1].map((axis) => Math.max(...seats.map((seat) => Math.abs(seat.at[axis]) + seat.half[axis])));
  const wider = Math.max(1 / STRETCH, Math.min(STRETCH, (aspect * height) / width));
  const moved = new Float32Array(positions.length);
  for (const { part, at, own } of seats) {
    part.forEach((entity, place) => {
      moved[2 * entity] = (at[0] + own[2 * place]) * Math.max(1, wider);
      moved[2 * entity + 1] = (at[1] + own[2 * place + 1]) * Math.max(1, 1 / wider);
    });
  }
  return moved;
}

export function middleLength(positions, { source, target, length }) {
  const lengths = new Float32Array(length);
  for (let link = 0; link < length; link++) lengths[link] = Math.hypot(positions[2 * source[link]] - positions[2 * target[link]], positions[2 * source[link] + 1] - positions[2 * target[link] + 1]);
  return lengths.sort()[length >> 1] || 1;
}

// Return a part with its positions around its middle, which is its first entity in the `main` part.
function boxOf(part, positions, main, gap) {
  const own = Float32Array.from({ length: 2 * part.length }, (_, place) => positions[2 * part[place >> 1] + (place & 1)]);
  const half = [0, 1].map((axis) => {
    const values = own.filter((_, place) => (place & 1) === axis);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const middle = main ? values[0] : (least + most) / 2;
    for (let place = axis; place < own.length; place += 2) own[place] -= middle;
    return Math.max(most - middle, middle - least) + gap;
  });
  return { part, own, half, at: [0, 0] };
}

// Return single entities in low rows, each shifted by half a step.
function gather(part, step, aspect) {
  const columns = Math.ceil(Math.sqrt(12 * aspect * part.length));
  const rows = Math.ceil(part.length / columns);
  const own = Float32Array.from({ length: 2 * part.length }, (_, place) => {
    const [row, column] = [Math.floor((place >> 1) / columns), (place >> 1) % columns];
    return step * (place & 1 ? row - (rows - 1) / 2 : column - (columns - 1) / 2 + (row % 2) / 2);
  });
  return { part, own, half: [(step * (columns + 1)) / 2, (step * (rows + 1)) / 2], at: [0, 0] };
}

// Move a part beside one of the placed parts, where the box of all around (0, 0) grows least.
function settle(seat, placed, aspect) {
  let least = Infinity;
  for (const { at, half } of placed.slice(0, 40)) {
    const far = [half[0] + seat.half[0], half[1] + seat.half[1]];
    for (const axis of [0, 1]) {
      for (const side of [-1, 1]) {
        for (const along of [0, -1, 1, -0.5, 0.5]) {
          const spot = [at[0], at[1]];
          spot[axis] += side * far[axis];
          spot[1 - axis] += along * (half[1 - axis] - seat.half[1 - axis]);
          const [x, y] = [Math.abs(spot[0]) + seat.half[0], Math.abs(spot[1]) + seat.half[1]];
          const cost = Math.max(x / aspect, y) + 0.05 * Math.hypot(x / aspect, y);
          if (cost < least - 1e-6 && !placed.some((other) => overlaps(spot, seat.half, other))) {
            least = cost;
            seat.at = spot;
          }
        }
      }
    }
  }
}

function overlaps(at, half, other) {
  return [0, 1].every((axis) => Math.abs(at[axis] - other.at[axis]) < (half[axis] + other.half[axis]) * 0.999);
}
