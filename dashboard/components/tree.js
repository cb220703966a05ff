// ---------------------------------------------------------------------------------------------
// tree.js: a step that drafted a tree, as columns: one for each place of the text, on top what stands there in the end, below
// it the guesses for that place that were not kept. So the text reads on in one line, and its siblings hang from it.
// ---------------------------------------------------------------------------------------------

const NOT_KEPT = new Set(['rejected', 'declined', 'unreached']);

// How deep each token stands, from 0; `parents` has the place of the one that it follows, -1 for none.
function depthsOf(parents) {
  const depths = [];
  for (const parent of parents) depths.push(parent < 0 ? 0 : depths[parent] + 1);
  return depths;
}

// The places in the order of a drawn tree: each token, then all that follows it.
function drawnOrder(parents) {
  const order = [];
  const visit = (place) => {
    order.push(place);
    parents.forEach((parent, other) => parent === place && visit(other));
  };
  parents.forEach((parent, place) => parent < 0 && visit(place));
  return order;
}

// The elements of a step, from its token spans and the parents of its positions. In a column hang the siblings of what stands
// on top; guesses of other branches are counted, and come into sight when the step is opened.
function columnsOf(spans, parents) {
  const depths = depthsOf(parents);
  const columns = [];
  for (const span of spans) (columns[depths[span.dataset.position]] ??= []).push(span);
  return columns.flatMap((column) => {
    const top = column.find((span) => !NOT_KEPT.has(span.dataset.outcome));
    const rest = column.filter((span) => span !== top);
    if (!rest.length) return column;
    const aside = rest.filter((span) => !top || parents[span.dataset.position] !== parents[top.dataset.position]);
    for (const span of aside) span.classList.add('aside');
    const breaks = top?.textContent.includes('\n'); // a line break breaks the line only outside of a column
    const fork = make('span', 'fork');
    fork.append(top && !breaks ? top : make('span', 'fork-gap'), ...rest.filter((span) => !aside.includes(span)),
      ...(aside.length ? [moreButton(aside.length)] : []), ...aside);
    return breaks ? [fork, top] : [fork];
  });
}

function moreButton(count) {
  const button = Object.assign(make('button', 'fork-more', `+${count}`), {type: 'button'});
  button.title = `${count === 1 ? 'One guess' : `${count} guesses`} on other branches`;
  button.addEventListener('click', (event) => {
    event.stopPropagation();
    button.closest('.step').classList.toggle('open');
  });
  return button;
}
