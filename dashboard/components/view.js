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
    this.toggle = find('.show-rejected');
    writeLegend(find('.legend'), find('.glossary'));
    this.listen();
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
    if (this.charts.plotly) requestAnimationFrame(() => this.charts.plotly && this.charts.recolour());
    this.received();
  }

  open(data) {
    this.feed?.leave(this);
    this.run = data.run;
    this.feed = data.run ? feedFor(data) : null;
    this.shown = 0;
    this.announced = false;
    this.tooltip.hide();
    this.stream.clear();
    this.charts.clear(data.run);
    Object.assign(this.live.dataset, {run: data.run ?? '', shown: 0, state: data.run ? 'starting' : 'idle'});
  }

  close() {
    this.feed?.leave(this);
    cancelAnimationFrame(this.frameRequest);
    this.frameRequest = 0;
    clearTimeout(this.announceTimer);
    this.charts.stop();
  }

  // ---- data ----

  received() {
    this.live.dataset.connection = this.feed?.connection ?? 'ok';
    if (this.feed) this.charts.start(this.plotlyUrl);
    if (this.feed?.complete && this.feed.connection === 'ok' && this.mode === 'live' && !this.announced) {
      this.announced = true;
      this.announce(this.feed, 0);
    }
    this.requestFrame();
  }

  // A trigger that is sent while Streamlit remounts or reruns can be lost: repeat it until `data` shows that Python knows.
  announce(feed, times) {
    if (this.acknowledged || this.feed !== feed || times >= ANNOUNCE_MOST) return;
    this.setTriggerValue('done', {run: feed.run, state: feed.latest.state, reason: feed.latest.reason});
    this.announceTimer = setTimeout(() => this.announce(feed, times + 1), ANNOUNCE_EVERY_MS);
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
      if (!farBehind) this.stream.keepUp();
      this.keepTooltip();
      globalThis.__draftscopeProbe?.(this.shown, this.feed.latest);
    }
    if (behind) return this.requestFrame();
    if (this.feed?.latest) this.drawCharts(this.feed.latest);
  }

  enter([kind, step, ...rest]) {
    if (kind === 'draft') this.stream.showGuess(step, ...rest);
    else {
      const [decisions, note, point] = rest;
      this.stream.showFate(step, decisions, note);
      this.charts.add(point);
    }
  }

  // A run is shown as finished only when all of it is drawn.
  showState(behind) {
    const latest = this.feed?.latest;
    let state = this.feed ? latest?.state ?? 'starting' : 'idle';
    if (state === 'finished' && (behind || latest.more)) state = 'running';
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

  // ---- what a reader does ----

  listen() {
    const owner = (event) => event.target.closest?.('.stream .token, [data-explain]');
    this.live.addEventListener('pointerover', (event) => {
      if (event.pointerType === 'mouse' && !this.tooltip.pinned) this.inspect(owner(event));
    });
    this.live.addEventListener('pointerleave', () => this.tooltip.pinned || this.tooltip.hide());
    this.live.addEventListener('click', (event) => {
      const clicked = owner(event);
      const same = clicked && clicked === this.tooltip.owner && this.tooltip.pinned;
      this.inspect(same ? null : clicked, {pinned: true});
    });
    this.live.addEventListener('focusin', (event) => {
      if (event.target.matches('[data-explain]:focus-visible')) this.inspect(event.target, {spoken: true});
    });
    this.live.addEventListener('focusout', () => this.tooltip.pinned || this.tooltip.hide());
    this.live.addEventListener('keydown', (event) => this.key(event));
    this.stream.box.addEventListener('scroll', () => this.tooltip.owner && this.placeTooltip(), {passive: true});
    this.toggle.addEventListener('change', () => this.showRejected(this.toggle.checked));
  }

  key(event) {
    if (event.key === 'Escape') return this.tooltip.hide();
    if (event.target !== this.stream.box || !['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
    event.preventDefault();
    const here = this.stream.box.contains(this.tooltip.owner) ? this.tooltip.owner : null;
    const next = this.stream.neighbour(here, event.key === 'ArrowRight');
    if (!next) return;
    this.stream.stay();
    next.scrollIntoView({block: 'nearest'});
    this.inspect(next, {pinned: true, spoken: true});
  }

  inspect(owner, {pinned = false, spoken = false} = {}) {
    if (!owner) return this.tooltip.hide();
    if (owner === this.tooltip.owner && !pinned && !spoken) return;
    const nodes = owner.dataset.explain
      ? [make('p', 'tip-words', owner.dataset.explain)]
      : storyNodes(tokenStory(owner, this.stream.decisions.get(Number(owner.dataset.step))));
    this.tooltip.show(owner, nodes, pinned);
    if (spoken) this.tooltip.speak();
  }

  // The tokens of a step are replaced when the guess meets its fate; the tooltip goes on with the new one.
  keepTooltip() {
    const {owner, pinned} = this.tooltip;
    if (!owner) return;
    if (!owner.isConnected) this.inspect(this.stream.tokenLike(owner.dataset), {pinned});
    else if (this.stream.box.contains(owner)) this.placeTooltip();
  }

  placeTooltip() {
    const owner = this.tooltip.owner.getBoundingClientRect();
    const box = this.stream.box.getBoundingClientRect();
    const inStream = this.stream.box.contains(this.tooltip.owner);
    if (inStream && (owner.bottom < box.top || owner.top > box.bottom)) this.tooltip.hide();
    else this.tooltip.place();
  }

  showRejected(shown) {
    page.showRejected = shown;
    this.toggle.checked = shown;
    this.live.classList.toggle('hides-rejected', !shown);
    if (this.tooltip.owner && !this.tooltip.owner.checkVisibility()) this.tooltip.hide();
    this.stream.keepUp();
  }
}

function writeLegend(legend, glossary) {
  for (const [outcome, meaning] of Object.entries(OUTCOMES)) {
    const look = `token ${outcome === 'discarded' ? 'accepted discarded' : outcome}`;
    const sample = (tag) => {
      const element = make(tag, look);
      writeText(element, {outcome, text: outcome});
      return element;
    };
    const key = Object.assign(sample('button'), {type: 'button'});
    key.dataset.explain = meaning;
    legend.append(key);
    const term = make('dt', '');
    term.append(sample('span'));
    glossary.append(term, make('dd', '', meaning));
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
  // Streamlit cleans up after a superseded call at once, while the component is still there: only the latest call closes.
  return () => {
    if (view.generation !== generation) return;
    view.close();
    if (page.views.get(component.key) === view) page.views.delete(component.key);
  };
}
