// ---------------------------------------------------------------------------------------------
// tooltip.js: one bubble for the whole view: what happened to a token, or what a figure means.
// ---------------------------------------------------------------------------------------------

const TOOLTIP_GAP = 8;

// The arithmetic behind one token, in the words of the field.
function tokenStory(span, known) {
  const {step, position, outcome, token, part, discarded} = span.dataset;
  const decision = known.decisions?.[position];
  const text = outcome === 'guess' ? known.texts[position]
    : NOT_KEPT.has(outcome) ? decision.draftText : decision.targetText;
  const story = {
    text: quoted(text),
    outcome: discarded === '1' ? `${outcome}, then discarded` : outcome,
    meaning: [OUTCOMES[outcome]],
    rows: [['token id', token], ['step', count(Number(step) + 1)], ['position in step', String(Number(position) + 1)]],
  };
  if (discarded === '1') story.meaning.push(OUTCOMES.discarded);
  if (part) story.rows.push(['part of a character', part]);
  if (known.note) story.meaning.push(`${sentence(known.note)}.`.replace('..', '.'));
  if (!decision || outcome === 'unreached') return story;

  if (outcome === 'rejected') story.rows.push(['replaced by', `${quoted(decision.targetText)} (id ${decision.targetToken})`]);
  if (outcome === 'recovered') story.rows.push(['replaces', `${quoted(decision.draftText)} (id ${decision.draftToken})`]);
  if (outcome === 'accepted' || outcome === 'rejected' || outcome === 'declined') {
    story.rows.push(
      ['draft probability', probability(decision.draftProb)],
      ['target probability', probability(decision.targetProb)],
      ['acceptance probability', probability(decision.acceptProb, decision.draw)],
      ['draw', probability(decision.draw, decision.acceptProb)]);
    story.test = decision;
    story.meaning = [verdict(decision), ...story.meaning.slice(1)];
  } else {
    story.rows.push(['target probability', probability(decision.emittedProb)]);
  }
  return story;
}

function verdict({outcome, acceptProb, draw}) {
  const kept = outcome === 'accepted';
  if (draw === null || acceptProb === null) return `${kept ? 'Kept' : 'Refused'}. The rule holds no number against a probability.`;
  if (kept && draw >= acceptProb) return 'Kept for the sake of a token behind it: its own draw is not below the acceptance probability.';
  return kept ? 'Kept: the draw is below the acceptance probability.'
    : 'Refused: the draw is not below the acceptance probability.';
}

function storyNodes(story) {
  const head = make('div', 'tip-head');
  head.append(make('span', 'tip-text', story.text), make('span', 'tip-outcome', story.outcome));
  const nodes = [head, ...story.meaning.map((words) => make('p', 'tip-words', words))];
  if (story.test && story.test.acceptProb !== null) {
    const scale = make('div', 'tip-scale');
    scale.style.setProperty('--accept', story.test.acceptProb);
    if (story.test.draw !== null) {
      scale.append(make('span', 'tip-draw'));
      scale.style.setProperty('--draw', story.test.draw);
    }
    nodes.push(scale);
  }
  const table = make('dl', 'tip-rows');
  for (const [name, value] of story.rows) table.append(make('dt', '', name), make('dd', '', value));
  nodes.push(table);
  return nodes;
}

class Tooltip {
  constructor(bubble, frame, spoken) {
    Object.assign(this, {bubble, frame, spoken, owner: null, pinned: false});
  }

  show(owner, nodes, pinned) {
    if (this.owner !== owner) this.hide();
    this.owner = owner;
    this.pinned = pinned;
    owner.classList.add('inspected');
    this.bubble.replaceChildren(...nodes);
    this.bubble.hidden = false;
    this.place();
  }

  hide() {
    this.owner?.classList.remove('inspected');
    this.owner = null;
    this.pinned = false;
    this.bubble.hidden = true;
  }

  say(words) {
    this.spoken.textContent = words;
  }

  // For a screen reader: only where the keyboard asked, or every move of the mouse would be read out.
  speak() {
    this.say([...this.bubble.querySelectorAll('.tip-text, .tip-outcome, .tip-words')]
      .map((node) => node.textContent).join(', ') || this.bubble.textContent);
  }

  // Below its owner, or above it where the window ends; never beyond the sides of the view.
  place() {
    const frame = this.frame.getBoundingClientRect();
    const lines = this.owner.getClientRects(); // a token may be broken over two lines
    const owner = lines[0] ?? this.owner.getBoundingClientRect();
    const {offsetWidth: width, offsetHeight: height} = this.bubble;
    const below = owner.bottom + TOOLTIP_GAP;
    const above = owner.top - height - TOOLTIP_GAP;
    const top = below + height > window.innerHeight && above > 0 ? above : below;
    this.bubble.style.top = `${top - frame.top}px`;
    this.bubble.style.left = `${Math.max(0, Math.min(owner.left - frame.left, frame.width - width))}px`;
  }
}
