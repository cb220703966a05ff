// ---------------------------------------------------------------------------------------------
// view.js: one mounted component. Brings feed, figures, stream, charts and tooltip together.
// ---------------------------------------------------------------------------------------------

const FRAME_MS = 12; // of one frame that drawing tokens may take; the rest waits for the next frame
const FAR_BEHIND = 1000; // entries: catching up with a long run, speed counts and smoothness does not
const FAR_BEHIND_FRAME_MS = 60;
const ANNOUNCE_EVERY_MS = 1500;
const ANNOUNCE_MOST = 6;

class View {
  constructor(root) {
    this.root = root;
    this.generation = 0;
    const find = (selector) => root.querySelector(selector);
    this.live = find('.live');
    this.waiting = find('.waiting');
    this.figures = new FigureRow(this.live);
    this.stream = new Stream(find('.stream'), find('.jump'));
    this.charts = new Charts(this.live, root);
    this.tooltip = new Tooltip(find('.tooltip'), this.live, find('.spoken'));
    this.steps = new Steps(find('.board'), find('.explain'), this.stream, (words) => this.tooltip.say(words));
    this.inspector = new Inspector(this.live, this.stream, this.tooltip, this.steps);
    this.toggle = find('.show-rejected');
    writeLegend(find('.legend'), find('.glossary'));
    this.toggle.addEventListener('change', () => this.showRejected(this.toggle.checked));
    this.showRejected(page.showRejected);
  }

  // ---- life: called by Streamlit when mounted, when `data` changed and when the theme changed ----

  update({data, setTriggerValue}) {
    this.setTriggerValue = setTriggerValue;
    this.acknowledged = data.finished;
    this.mode = data.mode;
    this.plotlyUrl = data.plotly;
    loadPlotly(data.plotly).catch(() => {}); // early: reading it takes about a second; the charts say so if it fails
    if (this.run !== data.run) this.open(data);
    this.feed?.watch(this);
    this.inspector.start();
    if (this.charts.plotly) requestAnimationFrame(() => this.charts.plotly && this.charts.recolour());
    this.received();
  }

  open(data) {
    this.rest();
    this.run = data.run;
    this.feed = data.run ? feedFor(data) : null;
    this.shown = 0;
    this.announcements = 0;
    this.tooltip.hide();
    this.stream.clear();
    this.steps.open(data.steps);
    this.charts.clear(data.run);
    Object.assign(this.live.dataset, {run: data.run ?? '', shown: 0, state: data.run ? 'starting' : 'idle'});
  }

  // Everything that runs by itself stops; `update` starts it again.
  rest() {
    this.feed?.leave(this);
    cancelAnimationFrame(this.frameRequest);
    clearTimeout(this.announceTimer);
    this.frameRequest = this.announceTimer = 0;
    this.inspector.stop();
  }

  close() {
    this.rest();
    this.charts.stop();
  }

  // ---- data ----

  received() {
    this.live.dataset.connection = this.feed?.connection ?? 'ok';
    if (this.feed) this.charts.start(this.plotlyUrl);
    if (this.feed?.complete && this.feed.connection === 'ok' && !this.announceTimer) this.announceEnd();
    this.requestFrame();
  }

  // A trigger that is sent while Streamlit remounts or reruns can be lost: repeat it until `data` shows that Python knows.
  announceEnd() {
    this.announceTimer = 0;
    if (this.mode !== 'live' || this.acknowledged || this.announcements >= ANNOUNCE_MOST) return;
    this.announcements++;
    const {state, reason} = this.feed.latest;
    this.setTriggerValue('done', {run: this.run, state, reason});
    this.announceTimer = setTimeout(() => this.announceEnd(), ANNOUNCE_EVERY_MS);
  }

  requestFrame() {
    this.frameRequest ||= requestAnimationFrame(() => this.frame());
  }

  frame() {
    this.frameRequest = 0;
    const entries = this.feed?.entries ?? [];
    const farBehind = entries.length - this.shown > FAR_BEHIND;
    const until = performance.now() + (farBehind ? FAR_BEHIND_FRAME_MS : FRAME_MS);
    const before = this.shown;
    while (this.shown < entries.length && performance.now() < until) this.enter(entries[this.shown++]);
    const behind = this.shown < entries.length;

    this.live.dataset.shown = this.shown;
    this.showState(behind);
    if (this.shown > before) {
      if (!farBehind || !behind) this.stream.keepUp();
      this.inspector.keep();
      globalThis.__draftscopeProbe?.(this.shown, this.feed.latest);
    }
    if (behind) return this.requestFrame();
    if (this.feed?.latest) this.drawCharts(this.feed.latest);
  }

  enter([kind, ...rest]) {
    if (kind === 'prompt') this.stream.showPrompt(...rest);
    else if (kind === 'draft') this.stream.showGuess(...rest);
    else {
      const [step, decisions, note, point] = rest;
      this.stream.showFate(step, decisions, note);
      this.charts.add(point);
    }
  }

  // A run is shown as finished only when all of it is drawn.
  showState(behind) {
    const latest = this.feed?.latest;
    let state = this.feed ? latest?.state ?? 'starting' : 'idle';
    if (state === 'finished' && (behind || latest.more)) state = 'loading';
    if (this.feed?.connection === 'gone' && state !== 'finished') state = 'lost';
    this.live.dataset.state = state;
    this.figures.show(this.feed, state);
    const words = this.shown || !this.feed || state === 'lost' ? ''
      : state === 'finished' ? 'This run gave no tokens.' : `${STATES[state] ?? state} …`;
    setNotice(this.waiting, words);
  }

  drawCharts(latest) {
    if (this.drawnFrom === latest) return;
    const same = this.drawnRun === this.run && this.drawnShown === this.shown;
    this.drawnFrom = latest;
    this.drawnRun = this.run;
    this.drawnShown = this.shown;
    if (same) return; // an answer without entries changes no chart
    this.charts.figures = latest.figures;
    this.charts.simulated = latest.simulated;
    this.charts.draw();
  }

  showRejected(shown) {
    page.showRejected = shown;
    this.toggle.checked = shown;
    this.live.classList.toggle('hides-rejected', !shown);
    this.stream.keepUp();
    this.inspector.place();
  }
}

export default function mount(component) {
  let view = page.views.get(component.key);
  if (view?.root !== component.parentElement) {
    view?.close();
    view = new View(component.parentElement);
    page.views.set(component.key, view);
  }
  const generation = ++view.generation;
  view.update(component);
  // Streamlit cleans up after a superseded call at once, while the component is still there: only the latest call
  // may stop the view, and only a view that is gone is given up.
  return () => {
    if (view.generation !== generation) return;
    if (view.root.isConnected) return view.rest();
    view.close();
    if (page.views.get(component.key) === view) page.views.delete(component.key);
  };
}
