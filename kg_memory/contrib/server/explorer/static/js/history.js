// The history of a fact on both clocks, as a small plane and as a table.

import { FAR, showMinute, showSpan } from "./dates.js";
import { drawing, element } from "./dom.js";
import { t } from "./i18n.js";
import { look, now, pointA } from "./looking.js";
import { hatch, shownRange } from "./plane.js";

const [WIDTH, HEIGHT] = [380, 84];

export function drawHistory(fact) {
  const { graph } = look;
  const beliefs = [...graph.beliefs.of(fact)].sort((a, b) => graph.created[b] - graph.created[a]);
  return element("div.stack", {}, drawPlane(beliefs), element("table", {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, t("so")), element("th", { scope: "col" }, t("believed")))),
    element("tbody", {}, beliefs.map((belief) => element(`tr${graph.expired[belief] < FAR ? ".past" : ""}`, {},
      element("td", {}, showSpan(graph.valid[belief], graph.until[belief], graph.from[belief]), graph.proposed[belief] ? ` (${t("not reviewed")})` : ""),
      element("td", {}, graph.expired[belief] < FAR ? t("from to", { start: showMinute(graph.created[belief]), end: showMinute(graph.expired[belief]) }) : t("since", { start: showMinute(graph.created[belief]) })))))));
}

function drawPlane(beliefs) {
  const { graph } = look;
  const steps = [...new Set(beliefs.flatMap((one) => [graph.created[one], graph.expired[one]]))].sort((a, b) => a - b);
  const times = beliefs.flatMap((one) => [graph.from[one], graph.until[one]]).filter((time) => Math.abs(time) < FAR);
  const range = shownRange();
  const last = Math.max(now(), range[1], ...times);
  const first = Math.min(...times, range[0]) - 1;
  const toX = (time) => Math.max(0, Math.min(1, (time - first) / (last - first + 1))) * WIDTH;
  const toY = (time) => HEIGHT - (HEIGHT * (steps.indexOf(time) + 0.5)) / steps.length;
  const boxes = beliefs.map((one) => {
    const [x, top] = [toX(graph.from[one]), graph.expired[one] >= FAR ? 0 : toY(graph.expired[one])];
    return drawing(`rect.${graph.expired[one] < FAR ? "past" : "held"}`, { x: x + 0.5, y: top + 0.5, width: Math.max(2, toX(graph.until[one]) - x - 1), height: Math.max(2, toY(graph.created[one]) - top - 1) });
  });
  return drawing("svg.mini", { viewBox: `0 0 ${WIDTH} ${HEIGHT + 14}`, "aria-hidden": "true" }, hatch("mini-hatch"), drawing("rect.box", { x: 0.5, y: 0.5, width: WIDTH - 1, height: HEIGHT - 1 }), boxes,
    drawing("line.at-a", { x1: toX(pointA().time), x2: toX(pointA().time), y1: 0, y2: HEIGHT, stroke: "var(--a)" }),
    drawing("text", { x: 0, y: HEIGHT + 11 }, new Date(first).toISOString().slice(0, 10)), drawing("text", { x: WIDTH, y: HEIGHT + 11, "text-anchor": "end" }, `${t("valid on")} →`));
}
