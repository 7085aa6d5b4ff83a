// The layer behind the graph: a hull around the shown members of each community, and a ring around the selected entity.

import { isTaken } from "./labels.js";
import { look } from "./looking.js";
import { colour } from "./theme.js";

const MOST = 16;
const AROUND = Array.from({ length: 12 }, (_, place) => [24 * Math.cos((place * Math.PI) / 6), 24 * Math.sin((place * Math.PI) / 6)]);

export function drawAreas(canvas, sigma, drawn, { wanted, chosen }) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  if (chosen !== undefined) drawRing(context, sigma, drawn, chosen);
  const { graph } = look;
  if (!wanted || !graph.communities.length || sigma.getCamera().isAnimated()) return;
  const largest = [...graph.communities.keys()].sort((a, b) => graph.communities[b].members.length - graph.communities[a].members.length).slice(0, MOST);
  largest.forEach((place, rank) => drawArea(context, sigma, drawn, graph.communities[place], colour(`type-${rank % 8}`), width));
}

function drawRing(context, sigma, drawn, entity) {
  if (!drawn.hasNode(String(entity))) return;
  const data = sigma.getNodeDisplayData(String(entity));
  const { x, y } = sigma.graphToViewport(drawn.getNodeAttributes(String(entity)));
  context.strokeStyle = colour("accent");
  context.lineWidth = 2.5;
  context.beginPath();
  context.arc(x, y, sigma.scaleSize(data.size) + 5, 0, 2 * Math.PI);
  context.stroke();
}

function drawArea(context, sigma, drawn, community, shade, width) {
  const points = [];
  for (const entity of community.members.slice(0, 400)) {
    const data = sigma.getNodeDisplayData(String(entity));
    if (!data || data.hidden || data.color === colour("ghost")) continue;
    const { x, y } = sigma.graphToViewport(drawn.getNodeAttributes(String(entity)));
    points.push([x, y]);
  }
  if (points.length < 3) return;
  const hull = findHull(points.flatMap(([x, y]) => AROUND.map(([dx, dy]) => [x + dx, y + dy])));
  context.globalAlpha = 0.08;
  context.fillStyle = shade;
  trace(context, hull);
  context.fill();
  context.globalAlpha = 0.85;
  context.fillStyle = colour("faint");
  context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const text = community.name.length > 36 ? `${community.name.slice(0, 35)}…` : community.name;
  const half = context.measureText(text).width / 2;
  context.textAlign = "center";
  const ends = [hull.reduce((best, point) => (point[1] < best[1] ? point : best)), hull.reduce((best, point) => (point[1] > best[1] ? point : best))];
  const spots = ends.map(([x, y], place) => [Math.max(half + 6, Math.min(width - half - 6, x)), Math.max(12, place ? y + 14 : y - 6)]);
  const spot = spots.find(([x, y]) => !isTaken([x - half, y - 10, x + half, y + 3]));
  if (spot) context.fillText(text, ...spot);
  context.globalAlpha = 1;
}

function trace(context, hull) {
  context.beginPath();
  hull.forEach(([x, y], place) => (place ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
}

// Return the convex hull of the points (Andrew's monotone chain).
function findHull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && cross(chain[chain.length - 2], chain[chain.length - 1], point) <= 0) chain.pop();
      chain.push(point);
    }
    chain.pop();
    return chain;
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

function cross(o, a, b) {
  return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
}
