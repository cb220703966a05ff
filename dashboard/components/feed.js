// ---------------------------------------------------------------------------------------------
// feed.js: one run's event log, fetched in increments from a cursor while somebody watches.
// ---------------------------------------------------------------------------------------------

const POLL_MS = 100; // between two questions while entries arrive
const QUIET_POLL_MS = 250; // when nothing came for a while, as in a pause
const QUIET_AFTER_MS = 3000;
const LONGEST_RETRY_MS = 4000;
const ANSWER_MS = 10000; // an answer that takes longer counts as lost
const FEEDS_KEPT = 3; // unwatched runs that stay in memory, so that a page switch loses nothing

// Survives remounts of the component; everything that must not live in the DOM is in here.
const page = (globalThis.__draftscope ??= {feeds: new Map(), views: new Map(), plotly: null, showRejected: true});

class AnswerError extends Error {}

class Feed {
  constructor(run, url) {
    this.run = run;
    this.url = url;
    this.entries = [];
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
    if (this.watchers.size && !this.complete) this.timer = setTimeout(() => this.ask(), pause);
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
    for (const entry of fresh) this.entries.push(entry);
    this.latest = rest;
    this.complete = rest.state === 'finished' && !rest.more;
    if (rest.more) return 0;
    if (fresh.length) this.newestAt = performance.now();
    return performance.now() - this.newestAt > QUIET_AFTER_MS ? QUIET_POLL_MS : POLL_MS;
  }
}

function feedFor({run, events}) {
  let feed = page.feeds.get(run);
  if (!feed || feed.connection === 'gone') {
    feed = new Feed(run, events);
    page.feeds.set(run, feed);
  }
  const unwatched = [...page.feeds.values()].filter((other) => other !== feed && !other.watchers.size);
  for (const other of unwatched.slice(0, Math.max(0, unwatched.length - FEEDS_KEPT))) page.feeds.delete(other.run);
  return feed;
}
