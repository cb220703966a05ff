// ---------------------------------------------------------------------------------------------
// alternatives.js: the deciding position of a step: what else could have stood there under draft, target and
// residual, how the token was drawn, and how far the laws are apart. Data as `engine.explain` gives it.
// ---------------------------------------------------------------------------------------------

const LAWS = ['draft', 'target', 'residual'];
const FACTS = [
  ['total variation', 'total_variation', 'Half the sum of the absolute differences of draft and target, over all tokens: 0 is the same law, 1 is nothing in common.'],
  ['target entropy', 'target_entropy', 'How open the target is here, in nats: 0 is sure of one token.'],
  ['draft entropy', 'draft_entropy', 'How open the draft is here, in nats: 0 is sure of one token.'],
];

function choiceNodes(choice) {
  const [taken, ...laws] = choice.words;
  const title = make('h4', '', `The deciding position, ${choice.position + 1}`);
  const nodes = [title, make('p', 'explain-words', taken)];
  if (choice.draw !== null && choice.drawn_prob !== null) nodes.push(stretchLine(choice));
  nodes.push(alternativesChart(choice), factsList(choice), ...laws.map((words) => make('p', 'explain-words', words)));
  return nodes;
}

// Where the number fell on the line on which every token owns a stretch as long as its probability.
function stretchLine({drawn_below: below, drawn_prob: prob, draw}) {
  const line = make('div', 'draw-line whole-line');
  line.setAttribute('role', 'img');
  line.setAttribute('aria-label', `the number drawn, ${probability(draw)}, on the line from 0 to 1`);
  const ends = make('div', 'unit-ends');
  ends.append(make('span', '', '0'), make('span', '', '1'));
  line.append(scaleBar(below, prob, draw), ends);
  return line;
}

function alternativesChart(choice) {
  const chart = make('div', 'alternatives');
  const greedy = choice.alternatives.some((row) => row.target_logit !== null);
  const shown = LAWS.filter((law) => choice.alternatives.some((row) => row[`${law}_prob`] !== null));
  const others = Object.fromEntries(shown.map((law) => [`${law}_prob`, choice[`${law}_others`]]));
  const most = Math.max(...[...choice.alternatives, others].flatMap((row) => shown.map((law) => row[`${law}_prob`] ?? 0)));
  const key = make('p', 'laws-key');
  for (const law of shown) {
    const name = make('span', '', law);
    name.dataset.law = law;
    key.append(name);
  }
  chart.append(key);
  for (const row of choice.alternatives) chart.append(...alternativeRow(row, shown, most, greedy));
  if (Object.values(others).some((mass) => mass > 0.00005)) {
    chart.append(make('span', 'alternative-name others', 'all other tokens'), lawBars(others, shown, most));
  }
  return chart;
}

function alternativeRow(row, shown, most, greedy) {
  const name = make('span', 'alternative-name');
  const tags = [row.guess && 'guess', row.taken && 'taken'].filter(Boolean);
  if (tags.length) name.append(make('span', 'alternative-tag', tags.join(', ')));
  name.append(tokenChip(row.text, row.token, row.taken ? 'taken' : ''));
  if (greedy) name.append(make('span', 'alternative-logit', `logit ${number(row.target_logit, 4)}`));
  name.dataset.token = row.token;
  return [name, lawBars(row, shown, most)];
}

function lawBars(row, shown, most) {
  const bars = make('div', 'law-bars');
  for (const law of shown) {
    const value = row[`${law}_prob`];
    const line = make('div', 'law-line');
    const bar = make('span', 'law-bar');
    bar.dataset.law = law;
    bar.style.width = `${100 * value / most}%`;
    line.append(bar, make('span', 'law-number', value === 0 ? '0' : probability(value)));
    line.setAttribute('aria-label', `${law} ${probability(value)}`);
    line.setAttribute('role', 'img');
    bars.append(line);
  }
  return bars;
}

function factsList(choice) {
  const list = make('dl', 'explain-facts');
  for (const [name, field, meaning] of FACTS) {
    if (choice[field] === null) continue;
    const fact = make('div', '');
    fact.tabIndex = 0;
    fact.dataset.explain = meaning;
    fact.dataset.fact = field;
    fact.append(make('dt', '', name), make('dd', '', field === 'total_variation' ? probability(choice[field]) : `${fixed(choice[field], 3)} nats`));
    list.append(fact);
  }
  return list;
}
