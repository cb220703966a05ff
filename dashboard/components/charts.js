// ---------------------------------------------------------------------------------------------
// charts.js: the four live Plotly charts. Nodes are made once and then only updated in place.
// ---------------------------------------------------------------------------------------------

const POINTS_MOST = 1000; // a longer course is thinned to every second point, then every fourth, ...
const DRAW_EVERY_MS = 80; // one chart at a time, so that no frame pays for all four
const DRAW_SHARE = 4; // and on a slow machine a pause of this many times what the last chart took
const PERCENT_AXIS = {tickformat: ',.0%', range: [0, 1.03], dtick: 0.25};

function loadPlotly(url) {
  if (globalThis.Plotly?.react) return Promise.resolve(globalThis.Plotly); // a chart elsewhere on the page brought it
  page.plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = url;
    script.onload = () => resolve(globalThis.Plotly);
    script.onerror = () => {
      page.plotly = null;
      reject(new Error('The charts could not be loaded.'));
    };
    document.head.append(script);
  });
  return page.plotly;
}

// The course of a run, one point a step, thinned as it grows. The latest point is always in it.
class Course {
  points = [];
  stride = 1;
  seen = 0;
  latest = null;

  add(point) {
    this.latest = point;
    if (this.seen++ % this.stride) return;
    this.points.push(point);
    if (this.points.length <= POINTS_MOST) return;
    this.points = this.points.filter((_, place) => place % 2 === 0);
    this.stride *= 2;
  }

  column(name) {
    const values = this.points.map((point) => point[name]);
    if (this.latest && this.points.at(-1) !== this.latest) values.push(this.latest[name]);
    return values;
  }
}

class Charts {
  constructor(live, root) {
    this.live = live;
    this.root = root;
    this.plots = Object.fromEntries([...live.querySelectorAll('.chart-panel')]
      .map((panel) => [panel.dataset.chart, panel.querySelector('.plot')]));
    this.names = Object.keys(this.plots);
    this.due = new Set();
    this.timer = 0;
    this.coarse = matchMedia('(pointer: coarse)').matches; // a finger scrolls the page, it does not zoom
    this.sizes = new ResizeObserver(() => this.resize());
    this.clear('');
  }

  clear(run) {
    this.run = run;
    this.course = new Course();
    this.figures = null;
    this.simulated = false;
    this.draw();
  }

  async start(url) {
    if (this.plotly || this.starting) return;
    this.starting = true;
    try {
      this.plotly = await loadPlotly(url);
      this.adoptStyles();
      this.recolour();
      for (const name of this.names) this.sizes.observe(this.plots[name]);
    } catch (failure) {
      for (const name of this.names) this.plots[name].textContent = failure.message;
    }
    this.starting = false;
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.sizes.disconnect();
    if (this.plotly) for (const name of this.names) this.plotly.purge(this.plots[name]);
    this.plotly = null;
  }

  // Plotly puts its style sheet into the document's head, which a shadow root does not see.
  adoptStyles() {
    const sheet = document.getElementById('plotly.js-style-global')?.sheet;
    if (!sheet || !(this.root instanceof ShadowRoot) || this.root.querySelector('style.plotly-styles')) return;
    const copy = document.createElement('style');
    copy.className = 'plotly-styles';
    copy.textContent = [...sheet.cssRules].map((rule) => rule.cssText).join('\n');
    this.root.append(copy);
  }

  resize() {
    if (!this.plotly) return;
    for (const name of this.names) {
      const plot = this.plots[name];
      if (plot.clientWidth && plot._fullLayout) this.plotly.Plots.resize(plot);
    }
  }

  // ---- colours: whatever the theme makes of them, as plain rgb ----

  recolour() {
    const context = Object.assign(document.createElement('canvas'), {width: 1, height: 1})
      .getContext('2d', {willReadFrequently: true});
    const probe = this.live.appendChild(document.createElement('span'));
    const resolve = (name) => {
      probe.style.color = `var(--${name})`;
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = getComputedStyle(probe).color;
      context.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
      return `rgba(${red},${green},${blue},${(alpha / 255).toFixed(3)})`;
    };
    const names = ['ink', 'muted', 'grid', 'paper', 'accepted', 'recovered', 'line'];
    this.colours = Object.fromEntries(names.map((name) => [name, resolve(name)]));
    probe.remove();
    this.font = getComputedStyle(this.live).fontFamily;
    this.draw();
  }

  // ---- drawing ----

  add(point) {
    this.course.add(point);
  }

  draw() {
    if (!this.plotly) return;
    for (const name of this.names) this.due.add(name);
    if (!this.timer) this.drawNext();
  }

  drawNext() {
    const [name] = this.due;
    this.timer = 0;
    if (!name || !this.plotly) return;
    this.due.delete(name);
    const began = performance.now();
    if (this.plots[name].clientWidth) {
      const {traces, layout} = this[name]();
      this.plotly.react(this.plots[name], traces, layout, {displayModeBar: false, doubleClick: 'reset'});
    }
    this.timer = setTimeout(() => this.drawNext(), Math.max(DRAW_EVERY_MS, DRAW_SHARE * (performance.now() - began)));
  }

  layout(x, y) {
    const {ink, muted, grid, paper, line} = this.colours;
    const axis = {gridcolor: grid, zerolinecolor: grid, linecolor: line, tickfont: {color: muted}, fixedrange: this.coarse};
    const title = (text) => ({text, standoff: 6, font: {color: muted, size: 12}});
    return {
      uirevision: this.run, // keeps a zoom for as long as the run is the same
      autosize: true,
      margin: {l: 54, r: 12, t: 8, b: 42}, // fixed: margins that follow the labels cost a second layout each time
      font: {color: ink, family: this.font, size: 12},
      paper_bgcolor: 'rgba(0,0,0,0)',
      plot_bgcolor: 'rgba(0,0,0,0)',
      showlegend: false,
      dragmode: this.coarse ? false : 'zoom',
      hovermode: 'x unified',
      hoverlabel: {bgcolor: paper, bordercolor: line, font: {color: ink}},
      xaxis: {...axis, showgrid: false, ...x, title: title(x.title)},
      yaxis: {...axis, rangemode: 'tozero', nticks: 6, ...y, title: title(y.title)},
    };
  }

  get timeAxis() {
    return {title: this.simulated ? 'simulated time (s)' : 'time (s)', hoverformat: '.2f', rangemode: 'tozero'};
  }

  solid(x, y, name, extra) {
    return {x, y, name, mode: 'lines', line: {color: this.colours.accepted, width: 2}, ...extra};
  }

  dashed(x, y, name, extra) {
    return {x, y, name, mode: 'lines', line: {color: this.colours.recovered, width: 2, dash: 'dash'}, ...extra};
  }

  throughput() {
    const x = this.course.column('at');
    const line = {color: this.colours.recovered, width: 2};
    return {
      traces: [this.solid(x, this.course.column('tokens_per_second'), 'tokens per second', {line, hovertemplate: '%{y:.3~g} tokens/s'})],
      layout: this.layout(this.timeAxis, {title: 'tokens per second'}),
    };
  }

  acceptance() {
    const x = this.course.column('at');
    const hovertemplate = '%{y:.1%}';
    return {
      traces: [
        this.solid(x, this.course.column('acceptance_rate'), 'last steps', {hovertemplate}),
        this.dashed(x, this.course.column('acceptance_rate_total'), 'whole run', {hovertemplate}),
      ],
      layout: this.layout(this.timeAxis, {title: 'accepted / drafted', ...PERCENT_AXIS}),
    };
  }

  lengths() {
    const steps = this.figures?.accepted_length_histogram ?? [];
    return {
      traces: [{type: 'bar', x: steps.map((_, length) => length), y: steps, name: 'steps', marker: {color: this.colours.accepted}, hovertemplate: '%{y} steps'}],
      layout: {...this.layout({title: 'drafted tokens kept in a step', dtick: steps.length > 12 ? 2 : 1}, {title: 'steps', tickformat: ',d'}), bargap: 0.25},
    };
  }

  positions() {
    const rows = this.figures?.per_position ?? [];
    const x = rows.map((row) => row.position);
    const shares = (name, of) => ({
      mode: 'lines+markers',
      customdata: rows.map((row) => [row.accepted, row[of]]),
      hovertemplate: `%{y:.1%} (%{customdata[0]} of %{customdata[1]} ${of})`,
      marker: {size: 8, symbol: name === 'survival' ? 'circle' : 'diamond-open', line: {width: 2, color: this.colours[name === 'survival' ? 'accepted' : 'recovered']}},
    });
    return {
      traces: [
        this.solid(x, rows.map((row) => row.survival), 'survival', shares('survival', 'drafted')),
        this.dashed(x, rows.map((row) => row.conditional), 'conditional', shares('conditional', 'tested')),
      ],
      layout: this.layout({title: 'position in the draft', dtick: rows.length > 12 ? 2 : 1}, {title: 'share accepted', ...PERCENT_AXIS}),
    };
  }
}
