// ---------------------------------------------------------------------------------------------
// laws.js: two small laws as bars that are dragged by mouse, touch or arrow keys, and what a rule makes of them.
// A bar that moves takes from the others in proportion, so that they still sum to 1. Everything else that is
// shown is the engine's: the laws go to the server, which enumerates and answers.
// ---------------------------------------------------------------------------------------------

const LAWS_SEND_MS = 60;
const KEY_STEPS = {ArrowUp: 0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowLeft: -0.01, PageUp: 0.1, PageDown: -0.1};
const lawsViews = (globalThis.__draftscopeLaws ??= new Map());

class LawsView {
  constructor(root) {
    this.root = root;
    this.revision = -1;
    this.sent = 0;
    this.laws = {target: [], draft: []};
    this.top = root.querySelector('.laws');
    this.panels = Object.fromEntries(
      [...root.querySelectorAll('.law-panel')].map((panel) => [panel.dataset.law, panel.querySelector('.law-columns')]));
  }

  update({data, setStateValue}) {
    this.setStateValue = setStateValue;
    // Laws that the page has set, or moves that a late call has undone; else the bars stay under the hand that moves them.
    if (data.revision !== this.revision || data.sent > this.sent) {
      this.revision = data.revision;
      this.laws = {target: data.target, draft: data.draft};
      this.names = data.names;
      this.sent = data.sent;
      this.build();
    }
    this.top.classList.toggle('stale', data.sent !== this.sent);
    this.show(data);
  }

  rest() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  close() {
    this.rest();
  }

  build() {
    this.rest();
    this.columns = {};
    for (const [law, box] of Object.entries(this.panels)) {
      this.columns[law] = this.names.map((name, place) => this.column(law, name, place));
      box.replaceChildren(...this.columns[law].map((column) => column.element));
    }
    this.draw();
  }

  column(law, name, place) {
    const element = make('div', 'law-column');
    const value = make('span', 'law-value');
    const track = make('div', 'law-track');
    const fill = make('div', 'law-fill');
    track.append(fill);
    element.append(value, track, make('span', 'law-name', name));
    element.dataset.token = name;
    const column = {element, value, track, fill};
    if (law === 'output') {
      column.goal = make('div', 'law-goal');
      track.append(column.goal);
      return column;
    }
    track.tabIndex = 0;
    track.setAttribute('role', 'slider');
    track.setAttribute('aria-orientation', 'vertical');
    track.setAttribute('aria-label', `${law} probability of ${name}`);
    track.setAttribute('aria-valuemin', 0);
    track.setAttribute('aria-valuemax', 1);
    const to = (event, base) => {
      const {bottom, height} = track.getBoundingClientRect();
      this.set(law, place, (bottom - event.clientY) / height, base);
    };
    track.addEventListener('pointerdown', (event) => {
      if (event.button) return;
      track.setPointerCapture(event.pointerId);
      track.classList.add('dragged');
      column.base = [...this.laws[law]];
      to(event, column.base);
    });
    track.addEventListener('pointermove', (event) => column.base && to(event, column.base));
    for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) {
      track.addEventListener(end, () => {
        column.base = null;
        track.classList.remove('dragged');
      });
    }
    track.addEventListener('keydown', (event) => {
      const now = this.laws[law][place];
      const wanted = event.key === 'Home' ? 0 : event.key === 'End' ? 1 : now + (KEY_STEPS[event.key] ?? NaN);
      if (Number.isNaN(wanted)) return;
      event.preventDefault();
      this.set(law, place, wanted, this.laws[law]);
    });
    return column;
  }

  // One bar at `wanted`, in hundredths; the others share the rest as they did in `base`.
  set(law, place, wanted, base) {
    const own = Math.round(100 * Math.min(1, Math.max(0, wanted))) / 100;
    const others = base.reduce((mass, share, index) => (index === place ? mass : mass + share), 0);
    this.laws[law] = base.map((share, index) =>
      index === place ? own : (1 - own) * (others > 0 ? share / others : 1 / (base.length - 1)));
    this.draw();
    this.top.classList.add('stale');
    this.timer ||= setTimeout(() => this.send(), LAWS_SEND_MS);
  }

  send() {
    this.timer = 0;
    this.setStateValue('laws', {revision: this.revision, sent: ++this.sent, ...this.laws});
  }

  draw() {
    for (const law of ['target', 'draft']) {
      this.columns[law].forEach(({value, track, fill}, place) => {
        const share = this.laws[law][place];
        setText(value, share.toFixed(3));
        fill.style.height = `${100 * share}%`;
        track.setAttribute('aria-valuenow', share.toFixed(3));
      });
    }
  }

  show({result, trouble}) {
    const notice = this.root.querySelector('.laws-trouble');
    notice.hidden = !trouble;
    setText(notice, trouble);
    for (const name of ['.laws-verdict', '.laws-figures', '.laws-tables', '.law-out']) {
      this.root.querySelector(name).hidden = !result;
    }
    this.top.dataset.same = result ? result.same : '';
    if (!result) return;
    this.columns.output.forEach(({element, value, fill, goal}, place) => {
      setText(value, result.first_output[place].toFixed(3));
      value.classList.toggle('law-off', result.first_off[place]);
      fill.style.height = `${100 * result.first_output[place]}%`;
      goal.style.height = `${100 * result.first_target[place]}%`;
      element.title = `${this.names[place]}: ${probability(result.first_output[place])} comes out, the target has ${probability(result.first_target[place])}`;
    });
    setText(this.root.querySelector('.laws-verdict'), result.sentence);
    this.root.querySelector('.laws-figures').replaceChildren(...result.figures.map(lawsFigure));
    this.root.querySelector('.laws-tables').replaceChildren(...result.tables.map(lawsTable));
  }
}

function lawsFigure({name, title, value, detail}) {
  const figure = make('div', 'laws-figure');
  figure.dataset.figure = name;
  figure.append(make('dt', '', title), make('dd', '', value), make('dd', '', detail));
  return figure;
}

function lawsTable({title, head, rows}) {
  const table = make('table', '');
  table.append(make('caption', '', title));
  const line = (cells, tag) => {
    const row = make('tr', '');
    row.append(...cells.map((cell) => make(tag, '', cell)));
    return row;
  };
  const body = make('tbody', '');
  body.append(...rows.map((row) => line(row, 'td')));
  const top = make('thead', '');
  top.append(line(head, 'th'));
  table.append(top, body);
  return table;
}

export default function mount(component) {
  return mountView(lawsViews, component, LawsView);
}
