// ---------------------------------------------------------------------------------------------
// charts.js: the four live Plotly charts. Nodes are made once and then only updated in place.
// ---------------------------------------------------------------------------------------------

const DRAW_EVERY_MS = 80; // one chart at a time, so that no frame pays for all four
const DRAW_SHARE = 4; // and on a slow machine a pause of this many times what the last chart took, while a run goes on

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
    this.ended = false; // whether all of the run has arrived, whatever state of it is shown
    this.over = false; // whether the state that is shown is its end
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
    const colours = Object.fromEntries(names.map((name) => [name, resolve(name)]));
    probe.remove();
    this.style = {colours, font: getComputedStyle(this.live).fontFamily};
    this.draw();
  }

  // ---- drawing ----

  add(point) {
    this.course.add(point);
  }

  startAgain(points) {
    this.course = new Course();
    for (const point of points) this.course.add(point);
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
      const {traces, layout} = plotOf(name, this);
      this.plotly.react(this.plots[name], traces, layout, {displayModeBar: false, doubleClick: 'reset'});
    }
    const pause = this.ended ? 0 : Math.max(DRAW_EVERY_MS, DRAW_SHARE * (performance.now() - began));
    this.timer = setTimeout(() => this.drawNext(), pause);
  }
}
