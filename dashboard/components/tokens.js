// ---------------------------------------------------------------------------------------------
// tokens.js: one decision -> the token spans that show it. Text is set as text, never as HTML.
// ---------------------------------------------------------------------------------------------

const NEEDS_CARE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const ONLY_SPACES = /^[ \u00a0\u3000]+$/;
const MARKS = {'\n': '↵', '\r': '␍', '\t': '⇥'};
const SIGNED = new Set(['recovered', 'bonus']);
const ONLY_INVISIBLE = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u;
const JOINS_GLYPHS = new Set(['\u200c', '\u200d']); // belong to scripts and emoji: left in place unless they stand alone
const ONLY_MARKS = /^\s*[\p{P}\p{S}]{1,3}\s*$/u; // small signs, which a line through them would hide
const NO_GLYPHS = new Set();

// Names the fields of a decision as they come over the wire.
function decisionOf(wire) {
  const [outcome, draftToken, draftText, targetToken, targetText, parts, discarded,
    draftProb, targetProb, acceptProb, draw, emittedProb, parent = null] = wire;
  return {outcome, draftToken, draftText, targetToken, targetText, parts, discarded: Boolean(discarded),
    draftProb, targetProb, acceptProb, draw, emittedProb, parent};
}

// What a reader sees of a decision: one token, or two where a drafted token was replaced.
function shownTokens(decision) {
  const {outcome, draftToken, draftText, targetToken, targetText, discarded, parts} = decision;
  const target = {outcome, id: targetToken, text: targetText, discarded, parts, emitted: !discarded};
  const drafted = {outcome, id: draftToken, text: draftText, discarded: false, parts: 1, emitted: false};
  if (outcome === 'unreached' || outcome === 'declined') return [drafted];
  if (outcome === 'rejected') return [drafted, {...target, outcome: 'recovered'}];
  return [target];
}

function tokenSpan(step, position, token) {
  const span = make('span', `token ${token.outcome}${token.discarded ? ' discarded' : ''}`);
  const data = span.dataset;
  data.step = step;
  data.position = position;
  data.outcome = token.outcome;
  data.token = token.id;
  data.discarded = token.discarded ? '1' : '0';
  writeText(span, token);
  return span;
}

// Marks for what is invisible are drawn by the style sheet, so that copied text stays the true text.
function writeText(span, {outcome, text, id, emitted}) {
  span.classList.toggle('slight', ONLY_MARKS.test(text));
  const sign = SIGNED.has(outcome) ? [make('span', 'sign')] : [];
  if (text === '') return span.append(...sign, mark(id === null ? '∅' : `#${id}`));
  if (ONLY_SPACES.test(text)) return span.append(...sign, make('span', 'blank', text));
  const [, lead, rest] = text.match(/^( *)(.*)$/su); // the sign stands with the word, behind its leading space
  if (!NEEDS_CARE.test(text)) return sign.length ? span.append(lead, ...sign, rest) : void (span.textContent = text);
  span.append(lead, ...sign, ...visible(rest, emitted));
  span.normalize(); // one text node again, so that joined emoji are drawn as one
}

// The text with a mark for every invisible character; only emitted text breaks the line.
function* visible(text, breaksLines) {
  const joiners = ONLY_INVISIBLE.test(text) ? NO_GLYPHS : JOINS_GLYPHS;
  for (const piece of text.match(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu)) {
    if (!NEEDS_CARE.test(piece) || joiners.has(piece)) yield piece;
    else {
      yield mark(MARKS[piece] ?? `U+${piece.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`);
      if (breaksLines && (piece === '\n' || piece === '\t' || JOINS_GLYPHS.has(piece))) yield piece;
    }
  }
}

function make(tag, className, text = '') {
  return Object.assign(document.createElement(tag), {className, textContent: text});
}

function mark(label) {
  const element = make('span', 'mark');
  element.dataset.mark = label;
  return element;
}

// The spans of one character: the last shows it whole, those before it only say that they belong to it.
function joinParts(spans) {
  spans.forEach((span, place) => {
    span.classList.add('part');
    span.dataset.part = `${place + 1} of ${spans.length}`;
    if (place < spans.length - 1) span.replaceChildren(...span.querySelectorAll('.sign'), mark('·'));
  });
}
