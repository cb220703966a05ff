// ---------------------------------------------------------------------------------------------
// file.js: a run that lies in this very file, shown by the live view as if a server had sent it.
// ---------------------------------------------------------------------------------------------

const kept = JSON.parse(document.getElementById('run').textContent);
const keptFeed = new Feed(kept.run, '', '');
for (const answer of kept.events) keptFeed.take(answer);
keptFeed.latest.goesOn = kept.goes_on;
for (const answer of kept.figures) keptFeed.course.take(answer);
page.feeds.set(kept.run, keptFeed);

function showFile() {
  mount({
    key: 'file',
    parentElement: document.getElementById('view'),
    data: {run: kept.run, mode: 'review', finished: true, step: null, events: '', figures: '', plotly: '', link: '', steps: kept.steps},
    setTriggerValue: () => {},
  });
}

showFile();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showFile);
