// ---------------------------------------------------------------------------------------------
// svg_plots.js: as much of Plotly as the charts ask for, drawn as SVG: for a run in a file, which plotly.js would make 5 MB larger.
// ---------------------------------------------------------------------------------------------

const SVG_NAMES = 'http://www.w3.org/2000/svg';
const NICE_STEPS = [1, 2, 2.5, 5, 10];
const DASHES = {dash: '7 5', solid: ''};

function svgElement(parent, tag, attributes, text = '') {
  const element = parent.appendChild(document.createElementNS(SVG_NAMES, tag));
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

// From and to where an axis goes, and its ticks: whole steps of 1, 2, 2.5 or 5 times a power of ten.
function scaleOf(values, {range, dtick, tickformat = '', rangemode}, most) {
  const known = values.filter((value) => value !== null && value !== undefined);
  let low = range?.[0] ?? (known.length && rangemode !== 'tozero' ? Math.min(...known) : 0);
  let high = range?.[1] ?? (known.length ? Math.max(...known) : 1);
  if (high <= low) high = low + 1;
  let step = dtick;
  while (!step || (high - low) / step > 2 * most) {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    step = power * NICE_STEPS.find((nice) => nice * power >= rough * 0.999);
    if (tickformat.endsWith('d')) step = Math.max(1, Math.ceil(step));
  }
  if (!range && rangemode === 'tozero') high *= 1.05;
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) ticks.push(tick);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (String(step).includes('25') ? 1 : 0));
  const words = (tick) => (tickformat.includes('%') ? percent(tick, 0) : tick.toFixed(Math.min(digits, 6)));
  return {low, high, ticks, words};
}

function drawPlot(node, traces, layout) {
  const {clientWidth: width, clientHeight: height} = node;
  const {l, r, t, b} = layout.margin;
  if (width <= l + r || height <= t + b) return;
  const svg = document.createElementNS(SVG_NAMES, 'svg');
  for (const [name, value] of Object.entries({width, height, role: 'img', 'font-size': layout.font.size})) svg.setAttribute(name, value);
  const label = (place, words) => svgElement(svg, 'text', {fill: layout.xaxis.tickfont.color, 'text-anchor': 'middle', ...place}, words);
  if (layout.annotations) {
    const [lines] = layout.annotations.map(({text}) => text.split('<br>'));
    lines.forEach((line, row) => label({x: width / 2, y: height / 2 + 16 * (row - (lines.length - 1) / 2)}, line));
    return node.replaceChildren(svg);
  }
  const bars = traces.some((trace) => trace.type === 'bar');
  const across = traces.flatMap((trace) => trace.x);
  const places = layout.xaxis.rangemode !== 'tozero'; // draft positions and lengths, not seconds
  const edge = places ? {...layout.xaxis, range: [Math.min(...across, 1e9) - 0.5, Math.max(...across, -1e9) + 0.5]} : layout.xaxis;
  const x = scaleOf(across, across.length ? edge : {...layout.xaxis, range: [0, 1]}, Math.max(2, (width - l - r) / 70));
  const y = scaleOf(traces.flatMap((trace) => trace.y), layout.yaxis, 5);
  const toX = (value) => l + ((value - x.low) / (x.high - x.low)) * (width - l - r);
  const toY = (value) => height - b - ((value - y.low) / (y.high - y.low)) * (height - t - b);

  for (const tick of y.ticks) {
    svgElement(svg, 'line', {x1: l, x2: width - r, y1: toY(tick), y2: toY(tick), stroke: layout.yaxis.gridcolor});
    label({x: l - 6, y: toY(tick) + 4, 'text-anchor': 'end'}, y.words(tick));
  }
  for (const tick of x.ticks) label({x: toX(tick), y: height - b + 16}, x.words(tick));
  svgElement(svg, 'line', {x1: l, x2: l, y1: t, y2: height - b, stroke: layout.xaxis.linecolor});
  label({x: (l + width - r) / 2, y: height - 6}, layout.xaxis.title.text);
  label({transform: `translate(12 ${(t + height - b) / 2}) rotate(-90)`}, layout.yaxis.title.text);
  for (const trace of traces) (bars ? drawColumns : drawCurve)(svg, trace, toX, toY);
  node.replaceChildren(svg);
}

function drawColumns(svg, {x, y, marker}, toX, toY) {
  const wide = (toX(1) - toX(0)) * 0.75;
  x.forEach((place, index) => svgElement(svg, 'rect', {
    x: toX(place) - wide / 2, y: toY(y[index]), width: wide, height: toY(0) - toY(y[index]), fill: marker.color,
  }));
}

// A value that is not available leaves a gap.
function drawCurve(svg, {x, y, mode, line, marker}, toX, toY) {
  let path = '';
  let joined = false;
  y.forEach((value, index) => {
    const known = value !== null && value !== undefined;
    if (known) path += `${joined ? 'L' : 'M'}${toX(x[index]).toFixed(1)} ${toY(value).toFixed(1)}`;
    joined = known;
    if (!known || !mode.includes('markers')) return;
    const open = marker?.symbol?.includes('open');
    svgElement(svg, 'circle', {
      cx: toX(x[index]), cy: toY(value), r: 4, fill: open ? 'none' : line.color, stroke: line.color, 'stroke-width': 2,
    });
  });
  svgElement(svg, 'path', {
    d: path, fill: 'none', stroke: line.color, 'stroke-width': line.width, 'stroke-dasharray': DASHES[line.dash] ?? '',
  });
}

globalThis.Plotly = {
  react(node, traces, layout) {
    node._fullLayout = layout; // by which charts.js knows that it has been drawn
    node.redraw = () => drawPlot(node, traces, layout);
    node.redraw();
  },
  purge: (node) => node.replaceChildren(),
  Plots: {resize: (node) => node.redraw()},
};
