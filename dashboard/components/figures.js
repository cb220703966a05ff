// ---------------------------------------------------------------------------------------------
// figures.js: the state of the run, the figures people look at first, and the share of time.
// ---------------------------------------------------------------------------------------------

const FIGURES = {
  tokens_per_second: number,
  tokens_per_step: (value) => fixed(value, 2),
  acceptance_rate: percent,
  per_token_acceptance: percent,
  target_calls_saved: count,
};

class FigureRow {
  constructor(live) {
    this.live = live;
    const find = (selector) => live.querySelector(selector);
    this.state = find('.state-words');
    this.speculation = find('.speculation');
    this.progress = find('.progress');
    this.prefill = find('.prefill');
    this.probe = find('.probe');
    this.perplexity = find('.perplexity');
    this.badges = {simulated: find('.badge-simulated'), lossy: find('.badge-lossy'), backend: find('.badge-backend')};
    this.notices = {error: find('.notice-error'), counts: find('.notice-counts'), connection: find('.notice-connection')};
    this.values = Object.keys(FIGURES).map((name) => [name, find(`[data-figure="${name}"]`)]);
    this.parts = ['draft', 'verify', 'overhead'].map((part) =>
      ({part, bar: find(`.share-bar [data-part="${part}"]`), label: find(`[data-share="${part}"]`)}));
  }

  showBackend(latest) {
    const badge = this.badges.backend;
    badge.hidden = !latest?.backend;
    if (badge.hidden) return;
    setText(badge, latest.exact_rows ? `${latest.backend}, exact rows` : latest.backend);
    badge.dataset.explain = 'What computes the rows of the target. ' + (latest.exact_rows
      ? 'A row is the same, bit for bit, alone and in a block, so that at temperature 0 speculative text equals plain text.'
      : 'A row alone and the same row in a block may differ in rounding, so that at temperature 0 a near tie may be decided otherwise than in plain text.');
  }

  // `figures` are those of the state that is shown; undefined while they are on their way.
  show(feed, state, figures) {
    const latest = feed?.latest;
    setText(this.state, this.stateWords(state, latest));
    this.live.classList.toggle('awaits-figures', state === 'replay' && !figures);
    this.live.classList.toggle('simulated', Boolean(latest?.simulated));
    this.badges.simulated.hidden = !latest?.simulated;
    this.badges.lossy.hidden = !latest || latest.lossless;
    this.showBackend(latest);
    this.showNotices(feed, latest);
    if (!figures) return state === 'replay' ? undefined : this.blank();

    this.showSpeculation(figures.speculation ?? '');
    const begun = !['starting', 'prefill'].includes(state); // before, no time has been counted that would move
    const tokens = counted(figures.tokens_generated, 'token');
    setText(this.progress, begun ? `${tokens} in ${counted(figures.steps, 'step')}, ${seconds(figures.total_time)}` : '');
    for (const [name, element] of this.values) setText(element, FIGURES[name](figures[name] ?? null));
    for (const {part, bar, label} of this.parts) {
      const share = figures[`${part}_share`] ?? null;
      bar.style.flexGrow = share ?? 0;
      setText(label, share === null ? NOT_AVAILABLE : `${percent(share, 0)}, ${seconds(figures[`${part}_seconds`])}`);
    }
    setText(this.perplexity, figures.perplexity ? `perplexity ${number(figures.perplexity)}` : '');
    setText(this.probe, figures.probe_seconds ? `explaining took ${seconds(figures.probe_seconds)}` : '');
    setText(this.prefill, figures.steps ? `prompt read in ${seconds(figures.prefill_seconds)}` : '');
  }

  // Whoever chose no drafter is not warned that there is none.
  showSpeculation(told) {
    const [, chosen] = told.match(/^inactive: (plain decoding: .*)/s) ?? [];
    setText(this.speculation, chosen ? sentence(chosen) : told && `Speculation ${told}`);
    this.speculation.classList.toggle('inactive', !chosen && /^(inactive|active, without)/.test(told));
  }

  blank() {
    for (const element of [this.speculation, this.progress, this.prefill, this.probe, this.perplexity]) setText(element, '');
    for (const [, element] of this.values) setText(element, NOT_AVAILABLE);
    for (const {bar, label} of this.parts) {
      bar.style.flexGrow = 0;
      setText(label, NOT_AVAILABLE);
    }
  }

  stateWords(state, latest) {
    if (state !== 'finished') return STATES[state] ?? sentence(state);
    if (!latest.reason) return latest.goesOn ? 'Still going on when this file was made' : 'Interrupted: the program that ran it ended';
    return `${STATES.finished}: ${REASONS[latest.reason] ?? latest.reason}`;
  }

  showNotices(feed, latest) {
    const {error, counts, connection} = this.notices;
    setNotice(error, latest?.error ? `The run ended with an error. ${sentence(latest.error)}` : '');
    counts.hidden = latest?.figures?.identities_ok !== false;
    setNotice(connection, {
      retrying: `${feed?.trouble || 'Connection lost'}, retrying. What is shown is what had arrived.`,
      gone: `This run cannot be found. ${latest ? 'What is shown is what had arrived.' : 'Press Run to start one.'}`,
    }[feed?.connection] ?? '');
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text; // untouched text is not announced again
}

function setNotice(element, text) {
  setText(element, text);
  element.hidden = !text;
}

// What stands where tokens will: what is waited for and, while a model is loaded, how far that is.
class Waiting {
  constructor(place) {
    this.place = place;
    this.words = place.querySelector('.waiting-words');
    this.progress = place.querySelector('.waiting-progress');
  }

  show(words, loading) {
    const {doing, done, total} = loading ?? {};
    setText(this.words, !words || !doing ? words : `${sentence(doing)}${total ? `: ${done} of ${total}` : ' …'}`);
    this.place.hidden = !words;
    this.progress.hidden = !total;
    if (total) Object.assign(this.progress, {max: total, value: done});
  }
}

// Every mark with its meaning: short as keys above the text, in full where there is no text yet.
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
