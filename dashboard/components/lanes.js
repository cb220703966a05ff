// ---------------------------------------------------------------------------------------------
// lanes.js: the latest run of every configuration side by side, fetched while a comparison goes on.
// ---------------------------------------------------------------------------------------------

const LANES_POLL_MS = 250; // measuring comes first: a reader asks four times a second, not more
const LANES_RETRY_MS = 1500;
const LANES_ANSWER_MS = 10000;
const LANES_ANNOUNCE_MS = 1500;
const LANES_ANNOUNCE_MOST = 6;
const lanesViews = (globalThis.__draftscopeLanes ??= new Map());

class Lane {
  constructor(name) {
    this.run = 0;
    this.cursor = 0;
    this.element = make('article', 'lane');
    this.element.dataset.lane = name;
    const head = make('header', 'lane-head');
    const title = make('h3', '');
    this.speed = make('span', 'lane-speed');
    title.append(make('span', 'lane-name', name), this.speed);
    this.words = make('p', 'lane-words', 'waiting for its turn');
    head.append(title, this.words);
    const box = make('div', 'text-box');
    const text = make('div', 'stream');
    text.tabIndex = 0;
    text.setAttribute('role', 'region');
    text.setAttribute('aria-label', `Text of ${name}`);
    const jump = make('button', 'jump', 'Follow the end');
    jump.type = 'button';
    jump.hidden = true;
    box.append(text, jump);
    this.element.append(head, box);
    this.stream = new Stream(text, jump);
  }

  // What is new; a run that is not the one shown begins anew.
  take({run, prompt, repeat, log}, repeats, going) {
    if (run !== this.run) {
      this.stream.clear();
      this.run = run;
      this.cursor = 0;
    }
    if (!run || log.from !== this.cursor) return;
    for (const [place, [kind, ...rest]] of log.entries.entries()) {
      const entry = this.cursor + place;
      if (kind === 'prompt') this.stream.showPrompt(entry, ...rest);
      else if (kind === 'draft') this.stream.showGuess(entry, ...rest);
      else this.stream.showFate(entry, ...rest.slice(0, 3));
    }
    this.cursor = log.next;
    if (log.entries.length) this.stream.keepUp();
    const figures = log.figures;
    this.element.classList.toggle('now', going && log.state !== 'finished');
    setText(this.words, `prompt ${prompt}, repeat ${repeat} of ${repeats}, ${counted(figures.tokens_generated, 'token')} ` +
      `in ${counted(figures.steps, 'step')}`);
    const speed = figures.tokens_per_second === null ? '' : `${number(figures.tokens_per_second)} tokens/s`;
    setText(this.speed, speed && log.simulated ? `${speed}, SIMULATED` : speed);
  }
}

class LanesView {
  constructor(root) {
    this.root = root;
    const find = (selector) => root.querySelector(selector);
    this.top = find('.lanes');
    this.words = find('.lanes-words');
    this.count = find('.lanes-count');
    this.progress = find('.lanes-progress');
    this.notice = find('.lanes-notice');
    this.board = find('.lanes-board');
    this.lanes = [];
    const legend = find('.lanes-legend');
    writeLegend(legend, make('dl', ''));
    for (const sample of legend.children) sample.title = sample.dataset.explain;
    this.timer = this.announceTimer = 0;
  }

  update({data, setTriggerValue}) {
    this.setTriggerValue = setTriggerValue;
    this.acknowledged = data.finished;
    if (this.comparison !== data.comparison) this.open(data);
    if (!this.timer && !this.asking && !this.complete && this.comparison) this.ask();
  }

  open({comparison, lanes, names}) {
    this.rest();
    this.comparison = comparison;
    this.url = lanes;
    this.complete = false;
    this.announcements = 0;
    this.lanes = names.map((name) => new Lane(name));
    this.board.replaceChildren(...this.lanes.map((lane) => lane.element));
    setNotice(this.notice, '');
    setText(this.words, '');
    setText(this.count, '');
    this.progress.value = 0;
    Object.assign(this.top.dataset, {comparison: comparison ?? '', state: comparison ? 'starting' : 'idle', done: 0});
  }

  rest() {
    clearTimeout(this.timer);
    clearTimeout(this.announceTimer);
    this.timer = this.announceTimer = 0;
  }

  close() {
    this.rest();
  }

  async ask() {
    const {comparison} = this;
    this.timer = 0;
    this.asking = true;
    let pause = LANES_POLL_MS;
    try {
      const at = this.lanes.map((lane) => `${lane.run}:${lane.cursor}`).join(',');
      const answer = await fetch(`${this.url}?at=${at}`, {signal: AbortSignal.timeout(LANES_ANSWER_MS)});
      if (comparison === this.comparison) {
        if (answer.ok) this.take(await answer.json());
        else if (answer.status === 404) this.forget();
        else throw new Error(answer.status);
      }
    } catch {
      setNotice(this.notice, 'Connection lost, retrying. What is shown is what had arrived.');
      pause = LANES_RETRY_MS;
    }
    this.asking = false;
    if (this.root.isConnected && !this.complete && this.comparison) this.timer = setTimeout(() => this.ask(), pause);
  }

  forget() {
    this.complete = true;
    this.top.dataset.state = 'lost';
    setNotice(this.notice, 'This comparison is no longer in memory. Press Compare to make another.');
  }

  take(answer) {
    const {state, doing, done, total, repeats, error, partial} = answer;
    const ended = state === 'finished';
    answer.lanes.forEach((lane, place) => this.lanes[place]?.take(lane, repeats, !ended));
    setNotice(this.notice, error ? `The comparison ended. ${sentence(error)}` : '');
    const more = answer.lanes.some((lane) => lane.log.more);
    setText(this.words, ended ? (partial ? 'Stopped: what was measured is kept' : error ? 'Ended' : 'Finished') : sentence(doing));
    setText(this.count, `${count(done)} of ${counted(total, 'run')}`);
    this.progress.max = total || 1;
    this.progress.value = done;
    this.complete = ended && !more;
    Object.assign(this.top.dataset, {state: this.complete ? 'finished' : 'running', done});
    if (this.complete) this.announceEnd();
  }

  // As in view.js: a trigger can be lost while Streamlit reruns, so it is repeated until Python knows.
  announceEnd() {
    this.announceTimer = 0;
    if (this.acknowledged || this.announcements >= LANES_ANNOUNCE_MOST) return;
    this.announcements++;
    this.setTriggerValue('done', {comparison: this.comparison});
    this.announceTimer = setTimeout(() => this.announceEnd(), LANES_ANNOUNCE_MS);
  }
}

export default function mount(component) {
  return mountView(lanesViews, component, LanesView);
}
