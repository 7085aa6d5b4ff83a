/* Web worker that computes the positions of entities with ForceAtlas2. */
/* global importScripts, module */

self.module = { exports: null };
const LIBRARY = "../vendor/forceatlas2-iterate.js";
const policy = self.trustedTypes?.createPolicy("layout-worker", { createScriptURL: () => LIBRARY });
importScripts(policy ? policy.createScriptURL("") : LIBRARY);
const iterate = module.exports;
const NODE = 10; // values for each node in the library's matrix
const LINK = 3;
let run = 0;

self.onmessage = ({ data }) => {
  run += 1;
  if (data.stop) return;
  place(data, run);
};

function place({ positions, sizes, sources, targets, rounds, every }, own) {
  const nodes = new Float32Array(sizes.length * NODE);
  const links = new Float32Array(sources.length * LINK);
  for (let i = 0; i < sizes.length; i++) {
    nodes.set([positions[2 * i], positions[2 * i + 1], 0, 0, 0, 0, 1, 1, sizes[i], 0], i * NODE);
  }
  for (let i = 0; i < sources.length; i++) {
    links.set([sources[i] * NODE, targets[i] * NODE, 1], i * LINK);
    nodes[sources[i] * NODE + 6] += 1;
    nodes[targets[i] * NODE + 6] += 1;
  }
  const many = sizes.length > 600;
  const settings = {
    linLogMode: false, outboundAttractionDistribution: false, adjustSizes: false, edgeWeightInfluence: 1,
    scalingRatio: many ? 10 : 40, strongGravityMode: !many, gravity: many ? 0.6 : 0.06, slowDown: 1 + Math.log(sizes.length + 1),
    barnesHutOptimize: many, barnesHutTheta: 0.9,
  };
  let round = 0;
  const step = () => {
    if (own !== run) return;
    const until = Date.now() + every;
    do {
      iterate(settings, nodes, links);
      round += 1;
    } while (round < rounds && Date.now() < until);
    const moved = new Float32Array(sizes.length * 2);
    for (let i = 0; i < sizes.length; i++) {
      moved[2 * i] = nodes[i * NODE];
      moved[2 * i + 1] = nodes[i * NODE + 1];
    }
    self.postMessage({ positions: moved, done: round >= rounds, part: round / rounds }, [moved.buffer]);
    if (round < rounds) setTimeout(step, 0);
  };
  step();
}
