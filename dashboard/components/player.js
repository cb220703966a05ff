// ---------------------------------------------------------------------------------------------
// player.js: which step of a finished run is shown: play, pause, step, scrub, by mouse, finger or keyboard.
// ---------------------------------------------------------------------------------------------

const STEPS_A_SECOND = 4; // at speed 1
const RECORDED = 'recorded'; // the speed at which it happened
const LONGEST_TICK_MS = 1000; // a tab that slept does not jump
const SAID_MS = 1500; // how long it says that the link is copied
const OWN_KEYS = new Set(['INPUT', 'SELECT', 'TEXTAREA', 'BUTTON']); // where a key has a meaning of its own

class Player {
  // `changed` is called whenever another state is to be shown.
  constructor(bar, live, stream, changed) {
    Object.assign(this, {bar, live, stream, changed});
    const find = (selector) => bar.querySelector(selector);
    this.slider = find('.player-slider');
    this.words = find('.player-words');
    this.speed = find('.player-speed');
    this.playButton = find('[data-do="toggle"]');
    this.link = find('[data-do="link"]');
    this.actions = {
      first: () => this.go(0),
      back: () => this.go(this.now() - (this.guess ? 0 : 1)),
      toggle: () => this.toggle(),
      forward: () => this.go(this.now() + 1),
      last: () => this.go(this.timeline.steps),
      link: () => this.copyLink(),
    };
    bar.addEventListener('click', (event) => this.actions[event.target.closest('[data-do]')?.dataset.do]?.());
    this.slider.addEventListener('input', () => this.go(Number(this.slider.value)));
    this.speed.addEventListener('change', () => (page.speed = this.speed.value));
    live.addEventListener('keydown', (event) => this.key(event));
    live.addEventListener('dblclick', () => {
      const step = stream.clicked?.dataset.step;
      if (step !== undefined && this.ready()) this.go(Number(step) + 1);
    });
    this.outside = (event) => document.activeElement === document.body && this.key(event);
    this.said = '';
    this.clear(null);
  }

  // A new run; `steps` is the state to open it in, null is its end.
  clear(timeline, steps = null) {
    this.pause();
    this.timeline = timeline;
    this.steps = timeline ? steps : null; // steps done in the state that is shown; null follows the run to its end
    this.guess = false; // and the guess of the next one
    this.complete = false;
    this.bar.hidden = true;
  }

  start() {
    document.addEventListener('keydown', this.outside); // adding it twice is adding it once
  }

  stop() {
    document.removeEventListener('keydown', this.outside);
    this.pause();
  }

  ready() {
    return this.complete && this.timeline.steps > 0;
  }

  // ---- what is to be shown ----

  // Whether that is another state than the end of the run.
  get replaying() {
    return this.steps !== null && this.steps < this.timeline.steps;
  }

  now() {
    return Math.min(this.steps ?? Infinity, this.timeline.steps);
  }

  entries() {
    if (!this.timeline) return 0;
    return this.steps === null ? this.timeline.entries : this.timeline.entriesAt(this.steps, this.guess);
  }

  // ---- moves ----

  go(steps) {
    if (!this.ready()) return;
    this.pause();
    this.show(Math.max(0, Math.min(steps, this.timeline.steps)));
  }

  show(steps, guess = false) {
    if (steps === this.steps && guess === this.guess) return;
    this.steps = steps;
    this.guess = guess;
    this.stream.follow();
    this.changed();
    this.write();
  }

  toggle() {
    if (!this.ready()) return;
    if (this.playing) return this.pause();
    if (this.now() === this.timeline.steps) this.show(0);
    this.playing = true;
    this.spent = 0; // milliseconds of the step that comes next
    this.tickedAt = performance.now();
    this.write();
    this.request = requestAnimationFrame(() => this.tick());
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.request);
    this.write();
  }

  tick() {
    const at = performance.now();
    this.spent += Math.min(LONGEST_TICK_MS, at - this.tickedAt);
    this.tickedAt = at;
    let steps = this.now();
    let length = this.lengthOf(steps);
    while (steps < this.timeline.steps && this.spent >= length) {
      this.spent -= length;
      length = this.lengthOf(++steps);
    }
    this.show(steps, steps < this.timeline.steps && this.spent >= length / 2);
    if (steps >= this.timeline.steps) return this.pause();
    this.request = requestAnimationFrame(() => this.tick());
  }

  // Milliseconds from the fate of the step before to that of this one.
  lengthOf(step) {
    if (step >= this.timeline.steps) return Infinity;
    if (this.speed.value === RECORDED) return 1000 * this.timeline.secondsOf(step);
    return 1000 / (STEPS_A_SECOND * Number(this.speed.value));
  }

  key(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || !this.ready()) return;
    const inText = event.target === this.stream.box;
    const does = {' ': 'toggle', ArrowLeft: 'back', ArrowRight: 'forward', Home: 'first', End: 'last'}[event.key];
    if (!does || (inText && event.key.startsWith('Arrow') && !event.shiftKey)) return;
    const onSlider = event.target === this.slider;
    if (OWN_KEYS.has(event.target.tagName) && !(onSlider && event.key === ' ') && !this.steers(event)) return;
    event.preventDefault();
    event.stopPropagation();
    this.actions[does]();
  }

  // On a button of the player the arrows steer too; Space presses it.
  steers(event) {
    return event.key !== ' ' && event.target.tagName === 'BUTTON' && this.bar.contains(event.target);
  }

  // ---- what the player says ----

  // Called when the run has grown or ended.
  grown(complete) {
    this.complete = complete;
    const hidden = !this.ready();
    if (hidden !== this.bar.hidden) {
      this.bar.hidden = hidden;
      this.stream.keepUp(); // its box has changed its height
    }
    this.write();
  }

  write() {
    if (this.bar.hidden) return;
    const {steps} = this.timeline;
    this.slider.max = steps;
    this.slider.value = this.now();
    this.slider.setAttribute('aria-valuetext', `step ${this.now()} of ${steps}`);
    this.speed.value = page.speed;
    setText(this.words, this.said || `${this.guess ? 'guess of step' : 'step'} ${count(this.now() + (this.guess ? 1 : 0))} of ${count(steps)}`);
    this.playButton.dataset.playing = this.playing ? '1' : '0';
    this.playButton.setAttribute('aria-label', this.playing ? 'Pause' : 'Play');
    this.playButton.title = this.playing ? 'Pause (space)' : 'Play (space)';
  }

  // ---- the link ----

  linkTo(address) {
    this.address = address;
    this.link.hidden = !address;
  }

  async copyLink() {
    const address = new URL(this.address, location.href);
    address.searchParams.set('step', this.now());
    try {
      await navigator.clipboard.writeText(address.href);
      this.said = 'link copied';
      setTimeout(() => {
        this.said = '';
        this.write();
      }, SAID_MS);
      this.write();
    } catch {
      prompt('The link to this step:', address.href); // no right to the clipboard, as over plain HTTP
    }
  }
}
