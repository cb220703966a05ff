// ---------------------------------------------------------------------------------------------
// feed.js: one run's event log, fetched in increments from a cursor while somebody watches, and its figures after every
// step, fetched once somebody goes back in it.
// ---------------------------------------------------------------------------------------------

const POLL_MS = 100; // between two questions while entries arrive
const QUIET_POLL_MS = 250; // when nothing came for a while, as in a pause
const QUIET_AFTER_MS = 3000;
const LONGEST_RETRY_MS = 4000;
const ANSWER_MS = 10000; // an answer that takes longer counts as lost
const FEEDS_KEPT = 3; // unwatched runs that stay in memory, so that a page switch loses nothing

// Survives remounts of the component; everything that must not live in the DOM is in here.
const page = (globalThis.__draftscope ??= {feeds: new Map(), views: new Map(), plotly: null, showRejected: true, speed: '1'});

class AnswerError extends Error {}

class Feed {
  constructor(run, events, figures) {
    this.run = run;
    this.url = events;
    this.course = new FigureCourse(figures, () => this.watchers.forEach((view) => view.received()));
    this.entries = [];
    this.timeline = new Timeline();
    this.latest = null; // the last answer without its entries: state, reason, figures, ...
    this.connection = 'ok'; // ok | retrying | gone
    this.trouble = ''; // what the server said of a failure, in words
    this.complete = false; // nothing more will come
    this.watchers = new Set();
    this.timer = 0;
    this.asking = false;
    this.failures = 0;
    this.newestAt = performance.now();
  }

  watch(view) {
    this.watchers.add(view);
    if (!this.timer && !this.asking && !this.complete) this.ask();
  }

  leave(view) {
    this.watchers.delete(view);
    if (this.watchers.size) return;
    clearTimeout(this.timer);
    this.timer = 0;
  }

  async ask() {
    this.timer = 0;
    this.asking = true;
    let pause;
    try {
      const answer = await fetch(`${this.url}?from=${this.entries.length}`, {signal: AbortSignal.timeout(ANSWER_MS)});
      pause = answer.status === 404 ? this.forget() : this.take(await this.read(answer));
    } catch (trouble) {
      this.trouble = trouble instanceof AnswerError ? trouble.message : '';
      this.connection = 'retrying';
      pause = Math.min(LONGEST_RETRY_MS, 250 * 2 ** this.failures++);
    }
    this.asking = false;
    for (const view of this.watchers) view.received();
    if (!this.watchers.size || this.complete) return;
    if (pause) this.timer = setTimeout(() => this.ask(), pause);
    else this.ask(); // before what has come is drawn, so that the server works meanwhile
  }

  async read(answer) {
    if (answer.ok) return answer.json();
    const {error} = await answer.json().catch(() => ({}));
    throw new AnswerError(error || `The server answered ${answer.status}`);
  }

  forget() {
    this.connection = 'gone';
    this.complete = true;
    return 0;
  }

  // Takes an answer in and says how long to wait before the next question.
  take({entries, ...rest}) {
    this.failures = 0;
    this.connection = 'ok';
    const known = this.entries.length - rest.from; // 0, unless an answer overlaps what is here
    if (known < 0) return 0;
    const fresh = entries.slice(known);
    for (const entry of fresh) {
      this.entries.push(entry);
      this.timeline.add(entry);
    }
    this.latest = rest;
    this.complete = rest.state === 'finished' && !rest.more;
    if (rest.more) return 0;
    if (fresh.length) this.newestAt = performance.now();
    return performance.now() - this.newestAt > QUIET_AFTER_MS ? QUIET_POLL_MS : POLL_MS;
  }
}

// The figures after every step, as the engine had them then. Row k belongs to the state after k steps.
class FigureCourse {
  constructor(url, arrived) {
    this.url = url;
    this.arrived = arrived;
    this.rows = [];
    this.names = null;
    this.complete = false;
    this.asking = false;
  }

  // The figures after that many steps; undefined if they are not here yet, in which case they are fetched.
  at(steps) {
    const row = this.rows[steps];
    if (!row) return void this.fetchAll();
    const {figures, positions} = this.names;
    const named = (names, values) => Object.fromEntries(names.map((name, place) => [name, values[place]]));
    return {...named(figures, row), per_position: row.at(-1).map((values) => named(positions, values))};
  }

  async fetchAll() {
    if (this.asking || this.complete) return;
    this.asking = true;
    try {
      while (!this.complete) {
        const answer = await fetch(`${this.url}?from=${this.rows.length}`, {signal: AbortSignal.timeout(ANSWER_MS)});
        if (!answer.ok) throw new AnswerError(`The server answered ${answer.status}`);
        this.take(await answer.json());
      }
    } catch {
      setTimeout(() => this.ended(), LONGEST_RETRY_MS); // whoever still needs them asks again then, and not before
      return;
    }
    this.ended();
  }

  ended() {
    this.asking = false;
    this.arrived();
  }

  take({names, rows, more}) {
    this.names = names;
    this.rows.push(...rows);
    this.complete = !more;
  }
}

function feedFor({run, events, figures}) {
  let feed = page.feeds.get(run);
  if (!feed || feed.connection === 'gone') {
    feed = new Feed(run, events, figures);
    page.feeds.set(run, feed);
  }
  const unwatched = [...page.feeds.values()].filter((other) => other !== feed && !other.watchers.size);
  for (const other of unwatched.slice(0, Math.max(0, unwatched.length - FEEDS_KEPT))) page.feeds.delete(other.run);
  return feed;
}
