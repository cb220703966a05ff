// ---------------------------------------------------------------------------------------------
// stream.js: the token stream. Steps are appended in order, a guess is replaced by its fate.
//
// Steps sit in chunks that the browser skips while they are out of sight, so that 20,000 tokens cost no
// more than 200. A chunk begins on a new line, so one is closed where the text breaks the line anyhow.
// To go back, the chunks from the one in question on are taken away, and the caller enters again what is left of it.
// They are kept, so that to go forward again is to put whole chunks back.
// ---------------------------------------------------------------------------------------------

const CHUNK_TOKENS = 96; // close at the next line break
const CHUNK_TOKENS_SENTENCE = 400; // close at the end of a sentence
const CHUNK_TOKENS_MOST = 800; // close
const NEAR_END_PIXELS = 32;
const INPUT_MS = 1000; // a scroll this soon after a wheel, touch, key or click is the reader's
const LONGEST_CHARACTER = 8; // tokens that one character may be spread over

// In the order in which they stand in the text.
function tokensOf(step) {
  return [...step.querySelectorAll('.token')];
}

class Stream {
  constructor(box, jump) {
    this.box = box;
    this.jump = jump;
    box.addEventListener('scroll', () => this.scrolled(), {passive: true});
    for (const input of ['wheel', 'touchmove', 'keydown', 'pointerdown']) {
      box.addEventListener(input, () => (this.inputAt = performance.now()), {passive: true});
    }
    this.inputAt = -Infinity;
    jump.addEventListener('click', () => {
      this.follow();
      box.focus({preventScroll: true});
    });
    this.clear();
  }

  clear() {
    this.box.replaceChildren();
    delete this.box.dataset.trees;
    this.chunk = null;
    this.chunkTokens = 0;
    this.openings = []; // of every chunk: its first entry, and the state of affairs just before
    this.kept = new Map(); // chunks that were taken away, by their first entry
    this.clicked = null; // the token that the first click of a double click hit
    this.marked = null; // the step that is marked as shown
    this.step = null; // the span of the latest step
    this.stepTokens = 0;
    this.recent = []; // the latest emitted spans, for characters spread over several
    this.told = new Map(); // step -> what a tooltip tells: its note, and texts (a guess) or decisions (its fate)
    this.follow();
  }

  // ---- entries: `entry` is their number in the log ----

  showPrompt(entry, text) {
    this.openChunk(entry);
    this.chunk.append(make('span', 'prompt', text));
  }

  showGuess(entry, index, tokens, texts, note, parents = null) {
    this.told.set(index, {note, texts});
    const spans = tokens.map((id, position) =>
      tokenSpan(index, position, {outcome: 'guess', id, text: texts[position], discarded: false, emitted: false}));
    this.fillStep(entry, index, parents ? this.forked(spans, parents) : spans);
  }

  showFate(entry, index, wires, note) {
    const decisions = wires.map(decisionOf);
    this.told.set(index, {note, decisions});
    const spans = [];
    const recovered = []; // read behind all that was refused
    const emitted = [];
    const tree = decisions[0].parent !== null;
    decisions.forEach((decision, position) => {
      for (const token of shownTokens(decision)) {
        const span = tokenSpan(index, position, token);
        (token.outcome === 'recovered' && !tree ? recovered : spans).push(span);
        if (token.emitted) emitted.push([span, token.parts]);
      }
    });
    this.fillStep(entry, index, tree ? this.forked(spans, decisions.map(({parent}) => parent)) : [...spans, ...recovered]);
    for (const [span, parts] of emitted) this.emitted(span, parts);
  }

  forked(spans, parents) {
    this.box.dataset.trees = '1';
    return columnsOf(spans, parents);
  }

  emitted(span, parts) {
    this.recent.push(span);
    if (this.recent.length > LONGEST_CHARACTER) this.recent.shift();
    if (parts < 2) return;
    const joined = this.recent.slice(-parts);
    joinParts(joined);
    if (!this.chunk.contains(joined[0])) this.openings.at(-1).tied = true;
  }

  fillStep(entry, index, spans) {
    if (Number(this.step?.dataset.step) !== index) {
      this.openChunk(entry);
      this.step = make('span', 'step');
      this.step.dataset.step = index;
      this.chunk.append(this.step);
      this.stepTokens = 0;
    }
    this.step.replaceChildren(...spans);
    const count = spans.length; // a column of siblings is as wide as one token
    this.chunkTokens += count - this.stepTokens;
    this.stepTokens = count;
  }

  openChunk(entry) {
    if (this.chunk && !this.chunkIsFull()) return;
    this.openings.push({entry, before: this.affairs(), tied: false});
    this.chunk = make('div', 'chunk');
    this.chunk.dir = 'auto';
    this.chunkTokens = 0;
    this.box.append(this.chunk);
  }

  affairs() {
    const {chunk, chunkTokens, step, stepTokens, recent} = this;
    return {chunk, chunkTokens, step, stepTokens, recent: [...recent]};
  }

  chunkIsFull() {
    if (this.chunkTokens < CHUNK_TOKENS) return false;
    const end = this.recent.at(-1)?.textContent ?? '';
    return end.endsWith('\n') || this.chunkTokens >= CHUNK_TOKENS_MOST ||
      (this.chunkTokens >= CHUNK_TOKENS_SENTENCE && /[.!?。！？]["”’)]?$/.test(end));
  }

  // ---- back and forward again ----

  // Takes entries away, of the `shown` that are here, so that at most the first `entries` are left, and says how many are;
  // the caller enters the rest again. A chunk that ends a character of the chunk before it goes together with that one.
  cut(entries, shown) {
    let end = shown;
    let after = this.affairs();
    let tied = false;
    for (let opening; (opening = this.openings.pop()); ) {
      const {entry, before} = opening;
      const whole = !tied && !opening.tied;
      if (whole && end > (this.kept.get(entry)?.end ?? entry)) this.kept.set(entry, {end, opening, after});
      after.chunk.remove();
      [end, after, tied] = [entry, before, opening.tied];
      if (entry <= entries && !tied) break;
    }
    Object.assign(this, after, {recent: [...after.recent]});
    return end;
  }

  // Puts a chunk back that begins at `entry`, if it is kept and does not go beyond `wanted`; says how many entries are here then.
  putBack(entry, wanted) {
    const kept = this.kept.get(entry);
    if (!kept || kept.end > wanted) return entry;
    this.kept.delete(entry); // it may grow from here on
    const {chunk, recent} = kept.after;
    const before = this.affairs(); // the chunk before this one may be another than it was
    this.openings.push({...kept.opening, before});
    const own = recent.filter((span) => chunk.contains(span));
    Object.assign(this, kept.after, {recent: [...before.recent, ...own].slice(-LONGEST_CHARACTER)});
    this.box.append(chunk);
    return kept.end;
  }

  // Marks the latest step as the one that is shown.
  mark(on) {
    const marked = on ? this.step : null;
    if (this.marked === marked) return;
    this.marked?.removeAttribute('aria-current');
    marked?.setAttribute('aria-current', 'step');
    this.marked = marked;
  }

  // ---- following the end ----

  scrolled() {
    const {scrollTop, scrollHeight, clientHeight} = this.box;
    const sameText = scrollHeight === this.scrollHeight; // if not, the browser may have moved it, not the reader
    const byReader = sameText || performance.now() - this.inputAt < INPUT_MS;
    if (scrollHeight - scrollTop - clientHeight < NEAR_END_PIXELS) this.following = true;
    else if (scrollTop < this.scrollTop - 1 && byReader) this.following = false;
    this.remember();
    this.jump.hidden = this.following;
  }

  remember() {
    this.scrollTop = this.box.scrollTop;
    this.scrollHeight = this.box.scrollHeight;
  }

  stay() {
    this.following = false;
    this.jump.hidden = false;
  }

  follow() {
    this.following = true;
    this.jump.hidden = true;
    this.keepUp();
  }

  keepUp() {
    this.toEnd();
    this.again ||= requestAnimationFrame(() => {
      this.again = 0;
      this.toEnd(); // a chunk that came into sight may turn out longer than was thought
    });
  }

  toEnd() {
    if (!this.following) return;
    this.box.scrollTop = this.box.scrollHeight;
    this.remember();
  }

  // ---- finding tokens ----

  tokenLike({step, position, outcome}) {
    const spans = [...this.box.querySelectorAll(`.token[data-step="${step}"][data-position="${position}"]`)];
    return spans.find((span) => span.dataset.outcome === outcome) ?? spans[0];
  }

  // The next visible token in reading order; from no token, the first one in sight.
  neighbour(span, forwards) {
    if (!span) return this.firstInSight();
    const way = forwards ? 'nextElementSibling' : 'previousElementSibling';
    let step = span.closest('.step');
    let tokens = tokensOf(step);
    for (let place = tokens.indexOf(span); ; ) {
      place += forwards ? 1 : -1;
      if (!tokens[place]) {
        step = this.beyond(step, way);
        if (!step) return span;
        tokens = tokensOf(step);
        place = forwards ? 0 : tokens.length - 1;
      }
      if (tokens[place]?.checkVisibility()) return tokens[place];
    }
  }

  // The first visible token of the next step, or of the one before; from no token, the first one in sight.
  neighbourStep(span, forwards) {
    if (!span) return this.firstInSight();
    let step = span.closest('.step');
    while ((step = this.beyond(step, forwards ? 'nextElementSibling' : 'previousElementSibling'))) {
      const token = tokensOf(step).find((child) => child.checkVisibility());
      if (token) return token;
    }
    return span;
  }

  // The step after this one that has tokens, in the next chunk if this one ends.
  beyond(step, way) {
    let next = step;
    do {
      const chunk = next.parentElement[way];
      next = next[way] ?? (way === 'nextElementSibling' ? chunk?.firstElementChild : chunk?.lastElementChild);
    } while (next && !next.childElementCount);
    return next;
  }

  firstInSight() {
    const top = this.box.getBoundingClientRect().top;
    const chunk = [...this.box.children].find((one) => one.getBoundingClientRect().bottom > top);
    const tokens = [...(chunk?.querySelectorAll('.token') ?? [])];
    return tokens.find((token) => token.checkVisibility() && token.getBoundingClientRect().top >= top) ?? tokens[0];
  }
}
