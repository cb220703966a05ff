// ---------------------------------------------------------------------------------------------
// view.js: one mounted component. Brings feed, player, figures, stream, charts and tooltip together.
//
// What is shown is the state after the first `shown` entries of the log. It runs after what the player wants: all that has
// arrived of a run that goes on, any earlier state of one that has ended. `step` is the latest step in it.
// ---------------------------------------------------------------------------------------------

const FRAME_MS = 12; // of one frame that drawing tokens may take; the rest waits for the next frame
const FAR_BEHIND = 1000; // entries: catching up with a long run, speed counts and smoothness does not
const FAR_BEHIND_FRAME_MS = 60;
const ENDED_FRAME_MS = 100; // a run that has ended is only waited for
const ANNOUNCE_EVERY_MS = 1500;
const ANNOUNCE_MOST = 6;

class View {
  constructor(root) {
    this.root = root;
    const find = (selector) => root.querySelector(selector);
    this.top = this.live = find('.live');
    this.waiting = new Waiting(find('.waiting'));
    this.figures = new FigureRow(this.live);
    this.stream = new Stream(find('.stream'), find('.jump'));
    this.charts = new Charts(this.live, root);
    this.tooltip = new Tooltip(find('.tooltip'), this.live, find('.spoken'));
    this.steps = new Steps(find('.board'), find('.explain'), this.stream, (words) => this.tooltip.say(words));
    this.inspector = new Inspector(this.live, this.stream, this.tooltip, this.steps);
    this.player = new Player(find('.player'), this.live, this.stream, () => this.requestFrame());
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
    if (this.run !== data.run || this.opened !== data.step) this.open(data);
    this.player.linkTo(data.link);
    this.feed?.watch(this);
    this.inspector.start();
    this.player.start();
    if (this.charts.plotly) requestAnimationFrame(() => this.charts.plotly && this.charts.recolour());
    this.received();
  }

  open(data) {
    this.rest();
    this.run = data.run;
    this.opened = data.step;
    this.feed = data.run ? feedFor(data) : null;
    this.shown = 0;
    this.announcements = 0;
    this.tooltip.hide();
    this.stream.clear();
    this.steps.open(data.steps);
    this.charts.clear(data.run);
    this.player.clear(this.feed?.timeline ?? null, data.step);
    Object.assign(this.live.dataset, {run: data.run ?? '', shown: 0, step: 0, state: data.run ? 'loading' : 'idle'});
  }

  // Everything that runs by itself stops; `update` starts it again.
  rest() {
    this.feed?.leave(this);
    cancelAnimationFrame(this.frameRequest);
    clearTimeout(this.announceTimer);
    this.frameRequest = this.announceTimer = 0;
    this.inspector.stop();
    this.player.stop();
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
    const wanted = this.player.entries();
    if (this.shown > wanted) this.goBack(wanted);
    const ended = this.feed?.latest?.state === 'finished'; // though more of it may be on its way
    const farBehind = ended || wanted - this.shown > FAR_BEHIND;
    const until = performance.now() + (ended ? ENDED_FRAME_MS : farBehind ? FAR_BEHIND_FRAME_MS : FRAME_MS);
    const before = this.shown;
    while (this.shown < wanted && performance.now() < until) {
      this.putBack(wanted);
      if (this.shown < wanted) this.enter(this.shown, entries[this.shown++], this.shown < wanted);
    }
    const behind = this.shown < wanted;
    const moved = this.live.dataset.shown !== String(this.shown);

    this.live.dataset.shown = this.shown;
    if (moved) this.live.dataset.step = this.step + 1;
    if (this.feed) this.player.grown(this.feed.complete);
    this.stream.mark(this.player.steps !== null && this.player.ready());
    const figures = this.figuresShown();
    this.showState(behind, figures);
    if (moved) {
      if (!farBehind || !behind) this.stream.keepUp();
      this.inspector.keep();
      if (this.player.steps !== null && this.player.ready()) this.steps.follow(this.step);
    }
    if (this.shown > before) globalThis.__draftscopeProbe?.(this.shown, this.feed.latest);
    if (behind) return this.requestFrame();
    if (this.feed?.latest && !this.feed.latest.more) this.drawCharts(figures);
  }

  // The step that is shown, counted from 0 as the engine does: the latest whose fate is drawn; -1 before the first.
  get step() {
    return this.feed ? this.feed.timeline.stepsIn(this.shown) - 1 : -1;
  }

  // `followed`: the next entry is entered at once. What follows a guess is its fate, so the guess need not be drawn.
  enter(entry, [kind, ...rest], followed) {
    if (kind === 'prompt') this.stream.showPrompt(entry, ...rest);
    else if (kind === 'draft' && followed) this.stream.fillStep(entry, rest[0], []);
    else if (kind === 'draft') this.stream.showGuess(entry, ...rest);
    else {
      const [step, decisions, note, point] = rest;
      this.stream.showFate(entry, step, decisions, note);
      this.charts.add(point);
    }
  }

  // Back to a state that lies behind; `frame` enters again what the stream took away too much.
  goBack(wanted) {
    this.shown = this.stream.cut(wanted, this.shown);
    this.charts.startAgain(this.feed.timeline.points.slice(0, this.step + 1));
  }

  // What was shown before, in whole chunks.
  putBack(wanted) {
    const step = this.step;
    const shown = this.stream.putBack(this.shown, wanted);
    if (shown === this.shown) return;
    this.shown = shown;
    for (const point of this.feed.timeline.points.slice(step + 1, this.step + 1)) this.charts.add(point);
  }

  // The engine's figures of the state that is shown; undefined while they are on their way.
  figuresShown() {
    if (!this.player.replaying) return this.feed?.latest?.figures;
    return this.feed.course.at(this.step + 1);
  }

  // A run is shown as finished only when all of it is drawn.
  showState(behind, figures) {
    const latest = this.feed?.latest;
    let state = this.feed ? latest?.state ?? 'loading' : 'idle'; // whether a model is loaded, the server says
    if (state === 'finished' && (behind || latest.more)) state = 'loading';
    if (this.feed?.connection === 'gone' && state !== 'finished') state = 'lost';
    if (state === 'finished' && this.player.replaying) state = 'replay';
    this.live.dataset.state = state;
    this.figures.show(this.feed, state, figures);
    const words = this.shown || !this.feed || state === 'lost' ? ''
      : state === 'finished' ? 'This run gave no tokens.' : `${STATES[state] ?? state} …`;
    this.waiting.show(words, state === 'starting' ? latest.loading : null);
  }

  drawCharts(figures) {
    const {complete, latest} = this.feed;
    const {replaying} = this.player;
    const state = `${this.run} ${this.shown} ${complete} ${replaying} ${Boolean(figures)}`;
    if (this.drawn === state) return; // an answer without entries that is not the last changes no chart
    this.drawn = state;
    this.charts.figures = figures;
    this.charts.simulated = latest.simulated;
    this.charts.ended = complete;
    this.charts.over = latest.state === 'finished' && !replaying;
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
  return mountView(page.views, component, View);
}
