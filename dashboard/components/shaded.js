// ---------------------------------------------------------------------------------------------
// shaded.js: the text of a run, every token shaded by the acceptance probability at its place.
// What is shown comes in `data`; nothing is computed here but the strength of a colour.
// ---------------------------------------------------------------------------------------------

const CHUNK = 128; // tokens in one block: what is out of sight is not laid out

export default function ({data, parentElement}) {
  const text = parentElement.querySelector('.text');
  if (text.shadedBy === data.key) return;
  text.shadedBy = data.key;
  const chunks = [];
  for (let start = 0; start < data.tokens.length; start += CHUNK) {
    const chunk = make('div', 'chunk');
    chunk.append(...data.tokens.slice(start, start + CHUNK).map(shadedToken));
    chunks.push(chunk);
  }
  text.replaceChildren(...chunks);
}

function shadedToken([text, outcome, acceptProb, refused]) {
  const span = make('span', `token ${outcome}${acceptProb === null ? ' untested' : ''}`);
  if (acceptProb !== null) span.style.setProperty('--refusal', `${(100 * (1 - acceptProb)).toFixed(1)}%`);
  span.title = acceptProb === null
    ? 'nothing was drafted here'
    : `${refused ? `${quoted(refused)} was refused here; ` : ''}acceptance probability ${probability(acceptProb)}`;
  writeText(span, {outcome: outcome === 'rejected' ? 'recovered' : outcome, text, id: null, emitted: true});
  return span;
}
