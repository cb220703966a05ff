// ---------------------------------------------------------------------------------------------
// explain.js: the panel that explains a step. Takes the data of `engine.explain.explain`, wherever it comes from,
// and an element to draw into; formats numbers, computes none.
// ---------------------------------------------------------------------------------------------

const NOT_RECORDED = 'The alternatives of this run were not recorded. Switch on “Explain every decision” in the sidebar and run again.';
const NOT_JUDGED = 'Drafted, not judged yet.';

class Explain {
  // `moves` are what the panel asks for: step(forwards), position(position, outcome), close().
  constructor(root, moves) {
    Object.assign(this, {root, moves});
    root.addEventListener('click', (event) => {
      const row = event.target.closest('[data-position]');
      if (row && row !== root) moves.position(Number(row.dataset.position), row.dataset.outcome);
    });
  }

  hide() {
    this.root.hidden = true;
    this.root.replaceChildren();
  }

  // Words in the place of a step that is not here (yet).
  wait(title, words) {
    this.draw(this.head(title, ''), make('p', 'explain-words', words));
  }

  // `outcome` is that of the token in question: at one position both the rejected and the recovered one may be meant.
  show(told, position, outcome) {
    const chosen = told.positions[position];
    Object.assign(this.root.dataset, {step: told.step, position});
    this.draw(
      this.head(`Step ${count(told.step + 1)}`, `position ${position + 1} of ${told.positions.length}`),
      this.lead(told, chosen, outcome),
      positionsTable(told.positions, position),
      ...(told.choice ? choiceNodes(told.choice) : [make('p', 'explain-none', NOT_RECORDED)]),
      ...(told.choice && told.probe_seconds ? [make('p', 'explain-foot', probeWords(told.probe_seconds))] : []));
  }

  // A button that has the keyboard's focus keeps it.
  draw(...nodes) {
    const focused = this.focused?.getAttribute('aria-label');
    this.root.hidden = false;
    this.root.replaceChildren(...nodes);
    if (focused) this.root.querySelector(`[aria-label="${focused}"]`)?.focus({preventScroll: true});
  }

  get focused() {
    const {activeElement} = this.root.getRootNode();
    return this.root.contains(activeElement) ? activeElement : null;
  }

  head(title, place) {
    const head = make('div', 'explain-head');
    const words = make('h3', '', title);
    if (place) words.append(make('span', 'explain-place', `, ${place}`));
    head.append(words,
      this.button('‹', 'Previous step (arrow up)', () => this.moves.step(false)),
      this.button('›', 'Next step (arrow down)', () => this.moves.step(true)),
      this.button('×', 'Close (Escape)', () => this.moves.close()));
    return head;
  }

  button(sign, label, action) {
    const button = Object.assign(make('button', 'explain-button', sign), {type: 'button', title: label});
    button.setAttribute('aria-label', label);
    button.addEventListener('click', action);
    return button;
  }

  lead(told, chosen, outcome) {
    const recovered = outcome === 'recovered';
    const drafted = !recovered && chosen.draft_token !== null;
    const lead = make('div', 'explain-lead');
    const words = recovered ? told.choice?.words[0] ?? OUTCOMES.recovered : chosen.words;
    lead.append(
      tokenChip(drafted ? chosen.draft_text : chosen.target_text, drafted ? chosen.draft_token : chosen.target_token,
        recovered ? 'recovered' : chosen.outcome),
      make('span', 'explain-outcome', recovered ? 'recovered' : chosen.discarded && !drafted ? `${chosen.outcome}, then discarded` : chosen.outcome),
      make('p', 'explain-words', words));
    if (chosen.logprob_words) lead.append(make('p', 'explain-words', chosen.logprob_words));
    if (told.note) lead.append(make('p', 'explain-note', `${sentence(told.note)}.`.replace('..', '.')));
    return lead;
  }

  // What a screen reader is told.
  get spoken() {
    return [...this.root.querySelectorAll('.explain-lead > *, .explain-head h3')].map((node) => node.textContent).join(', ');
  }
}

function tokenChip(text, id, outcome) {
  const chip = make('span', `token ${outcome}`);
  writeText(chip, {outcome, text, id, emitted: false});
  return chip;
}

function probeWords(probeSeconds) {
  return `Recording this took ${seconds(probeSeconds)}, which is in no other time of the run.`;
}

// ---- the table of positions ----

const COLUMNS = [
  ['', 'place'], ['drafted', 'token'], ['draft', 'prob'], ['target', 'prob'], ["the rule's test", 'formula'],
  ['draw', 'draw'], ['outcome', 'outcome'],
];

function positionsTable(positions, chosen) {
  const table = make('table', 'explain-positions');
  const head = table.createTHead().insertRow();
  for (const [words, kind] of COLUMNS) head.append(Object.assign(make('th', `cell-${kind}`, words), {scope: 'col'}));
  const body = table.createTBody();
  const parents = positions.map(({parent}) => parent);
  const tree = parents[0] !== null;
  const depths = tree ? depthsOf(parents) : [];
  for (const place of tree ? drawnOrder(parents) : positions.keys()) {
    const row = positionRow(positions[place], place === chosen);
    if (tree) row.style.setProperty('--depth', depths[place]);
    body.append(row);
  }
  table.classList.toggle('of-a-tree', tree);
  return table;
}

function positionRow(told, chosen) {
  const row = make('tr', chosen ? 'chosen' : '');
  Object.assign(row.dataset, {position: told.position, outcome: told.outcome});
  if (chosen) row.setAttribute('aria-current', 'true');
  const cell = (kind, label, ...content) => {
    const made = make('td', `cell-${kind}`);
    if (label) made.dataset.label = label;
    made.append(...content);
    row.append(made);
  };
  const drafted = told.draft_token !== null;
  cell('place', '', String(told.position + 1));
  cell('token', '', ...(drafted ? [tokenChip(told.draft_text, told.draft_token, told.outcome)] : [make('span', 'nothing', 'nothing')]));
  cell('prob', 'draft', drafted ? shortProbability(told.draft_prob) : '');
  cell('prob', 'target', shortProbability(drafted ? told.target_prob : told.emitted_prob));
  cell('formula', '', told.formula, ...(told.exact ? [make('span', 'exact', `exact rule: ${told.exact.formula}`)] : []));
  cell('draw', '', ...drawBars(told));
  cell('outcome', '', told.outcome, ...(told.outcome === 'rejected' || !drafted ? [' ', tokenChip(told.target_text, told.target_token, drafted ? 'recovered' : told.outcome)] : []));
  return row;
}

function shortProbability(value) {
  return value === null ? '' : probability(value);
}

// The draw as a mark on a line from 0 to 1, which is filled as far as a draw would keep the token.
function drawBars(told) {
  const bars = [];
  if (told.draw !== null && told.accept_prob !== null) bars.push(drawBar(told.accept_prob, told.draw, told.outcome, ''));
  if (told.exact) bars.push(drawBar(told.exact.accept_prob, told.exact.draw, told.exact.accepted ? 'accepted' : 'rejected', 'exact rule: '));
  return bars;
}

function drawBar(threshold, draw, outcome, who) {
  const [drawn, below] = [probability(draw, threshold), probability(threshold, draw)];
  const whole = make('div', 'draw-line');
  whole.setAttribute('role', 'img');
  whole.setAttribute('aria-label', `${who}draw ${drawn}, kept below ${below}: ${outcome}`);
  whole.append(scaleBar(0, threshold, draw), make('span', 'draw-number', `${who}${drawn} ${draw < threshold ? '<' : '≥'} ${below}`));
  return whole;
}

// A line from 0 to 1 with a filled stretch and a mark.
function scaleBar(from, length, mark) {
  const bar = make('div', 'unit-line');
  const stretch = make('span', 'unit-stretch');
  stretch.style.left = `${100 * from}%`;
  stretch.style.width = `${100 * length}%`;
  const at = make('span', 'unit-mark');
  at.style.left = `${100 * mark}%`;
  bar.append(stretch, at);
  return bar;
}
