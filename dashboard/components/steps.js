// ---------------------------------------------------------------------------------------------
// steps.js: the chosen token and its step, whose explanation is fetched when it is asked for.
// In a file that holds a whole run the explanations are there already, one for each step.
// ---------------------------------------------------------------------------------------------

const STEPS_KEPT = 64;

class Steps {
  constructor(board, panel, stream, speak) {
    Object.assign(this, {board, stream, speak, token: null, source: ''});
    this.told = new Map(); // step -> its explanation
    this.explain = new Explain(panel, {
      step: (forwards) => this.moveStep(forwards),
      position: (position, outcome) => this.choose(stream.tokenLike({step: this.token.dataset.step, position, outcome})),
      close: () => this.close(),
    });
  }

  // `source` is the address of the steps, or the steps themselves.
  open(source) {
    this.source = source;
    this.told.clear();
    this.close();
  }

  close() {
    this.token?.classList.remove('chosen');
    this.token = null;
    this.board.classList.remove('explaining');
    if (this.explain.focused) this.stream.box.focus({preventScroll: true});
    this.explain.hide();
  }

  // Out of sight below, as on a phone, the panel's first words are brought into sight.
  async choose(token, {spoken = false} = {}) {
    if (!token) return;
    this.token?.classList.remove('chosen');
    this.token = token;
    token.classList.add('chosen');
    if (token.matches('.aside')) token.closest('.step').classList.add('open');
    this.board.classList.add('explaining');
    const {step, position, outcome} = token.dataset;
    const title = `Step ${count(Number(step) + 1)}`;
    if (outcome === 'guess') return this.explain.wait(title, NOT_JUDGED);
    let told = this.told.get(step);
    if (!told) {
      try {
        told = await this.fetch(step);
      } catch (trouble) {
        if (this.token === token) this.explain.wait(title, `This step could not be fetched: ${trouble.message}.`);
        return;
      }
      if (this.token !== token) return; // another one was chosen meanwhile
    }
    this.explain.show(told, Number(position), outcome);
    this.explain.root.querySelector('.explain-lead').scrollIntoView({block: 'nearest'});
    if (spoken) this.speak(this.explain.spoken);
  }

  async fetch(step) {
    if (typeof this.source !== 'string') return this.source[step];
    const answer = await fetch(`${this.source}/${step}`, {signal: AbortSignal.timeout(ANSWER_MS)});
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    this.told.set(step, told);
    if (this.told.size > STEPS_KEPT) this.told.delete(this.told.keys().next().value);
    return told;
  }

  move(forwards, spoken) {
    this.goTo(this.stream.neighbour(this.here(), forwards), spoken);
  }

  moveStep(forwards, spoken = false) {
    this.goTo(this.stream.neighbourStep(this.here(), forwards), spoken);
  }

  goTo(token, spoken) {
    if (!token) return;
    this.stream.stay();
    token.scrollIntoView({block: 'nearest'});
    this.choose(token, {spoken});
  }

  // An open panel goes along to the step that a replay shows.
  follow(step) {
    if (!this.token || Number(this.token.dataset.step) === step) return;
    const tokens = [...this.stream.box.querySelectorAll(`.token[data-step="${step}"]`)];
    this.choose(tokens.filter(({dataset}) => !NOT_KEPT.has(dataset.outcome)).at(-1) ?? tokens.at(-1));
  }

  here() {
    return this.token?.isConnected ? this.token : null;
  }

  // The tokens of a step are replaced when the guess meets its fate; the panel goes on with the new one.
  keep() {
    if (this.token && !this.token.isConnected) this.choose(this.stream.tokenLike(this.token.dataset));
  }
}
