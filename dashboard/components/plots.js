// ---------------------------------------------------------------------------------------------
// plots.js: what the four charts show: the course of a run and its figures -> Plotly traces and layouts.
// ---------------------------------------------------------------------------------------------

const POINTS_MOST = 1000; // a longer course is thinned to every second point, then every fourth, ...
const SHARE_AXIS = {tickformat: ',.0%', range: [0, 1.03], dtick: 0.25};

// The course of a run, one point a step, thinned as it grows. The latest point is always in it.
class Course {
  points = [];
  stride = 1;
  seen = 0;
  latest = null;

  add(point) {
    this.latest = point;
    if (this.seen++ % this.stride) return;
    this.points.push(point);
    if (this.points.length <= POINTS_MOST) return;
    this.points = this.points.filter((_, place) => place % 2 === 0);
    this.stride *= 2;
  }

  column(name) {
    const values = this.points.map((point) => point[name]);
    if (this.latest && this.points.at(-1) !== this.latest) values.push(this.latest[name]);
    return values;
  }
}

// `style` holds the theme's colours and font, `run` keeps a zoom for as long as the run is the same.
function layoutOf({style, run, coarse}, x, y) {
  const {ink, muted, grid, paper, line} = style.colours;
  const axis = {gridcolor: grid, zerolinecolor: grid, linecolor: line, tickfont: {color: muted}, fixedrange: coarse};
  const title = (text) => ({text, standoff: 6, font: {color: muted, size: 12}});
  return {
    uirevision: run,
    autosize: true,
    margin: {l: 54, r: 12, t: 8, b: 42}, // fixed: margins that follow the labels cost a second layout each time
    font: {color: ink, family: style.font, size: 12},
    paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: 'rgba(0,0,0,0)',
    showlegend: false,
    bargap: 0.25,
    dragmode: coarse ? false : 'zoom',
    hovermode: 'x unified',
    hoverlabel: {bgcolor: paper, bordercolor: line, font: {color: ink}},
    xaxis: {...axis, showgrid: false, ...x, title: title(x.title)},
    yaxis: {...axis, rangemode: 'tozero', nticks: 6, ...y, title: title(y.title)},
  };
}

function timeAxis({simulated}) {
  return {title: simulated ? 'simulated time (s)' : 'time (s)', hoverformat: '.2f', rangemode: 'tozero'};
}

function placesAxis(title, n) {
  return {title, dtick: n > 12 ? 2 : 1};
}

function countAxis(counts) {
  return {tickformat: ',d', dtick: Math.max(0, ...counts) > 5 ? null : 1}; // no ticks between whole numbers
}

function curve(name, color, dash, x, y, hovertemplate) {
  return {name, x, y, hovertemplate, mode: x.length > 1 ? 'lines' : 'lines+markers', line: {color, dash, width: 2}};
}

// What a chart without anything to show says: what will stand there, and at the end of a run, why nothing does.
const NOTHING_YET = {
  throughput: 'Once tokens arrive:<br>how many of them in a second',
  acceptance: 'Once something is drafted:<br>the share of it that is kept, over time',
  lengths: 'Once something is drafted:<br>how many steps keep 0, 1, 2, … tokens of it',
  positions: 'Once something is drafted:<br>how often it is kept, by its place in the draft',
};
const NOTHING_AT_ALL = {throughput: 'This run gave no tokens.'};
const NOTHING_DRAFTED = 'Nothing was drafted in this run.';

// The traces and the layout of a chart: words in the place of axes where no trace has a value.
function plotOf(name, shown) {
  const {traces, layout} = PLOTS[name](shown);
  if (traces.some(({y}) => y.some((value) => value !== null && value !== undefined))) return {traces, layout};
  const text = shown.over ? NOTHING_AT_ALL[name] ?? NOTHING_DRAFTED : NOTHING_YET[name];
  const {xaxis, yaxis} = layout;
  const words = {text, xref: 'paper', yref: 'paper', x: 0.5, y: 0.5, showarrow: false, font: xaxis.title.font};
  return {
    traces: [],
    layout: {
      ...layout,
      margin: {l: 12, r: 12, t: 8, b: 8},
      xaxis: {...xaxis, visible: false},
      yaxis: {...yaxis, visible: false},
      annotations: [words],
    },
  };
}

const PLOTS = {
  throughput(shown) {
    const {course, style} = shown;
    const speed = course.column('tokens_per_second');
    return {
      traces: [curve('tokens per second', style.colours.recovered, 'solid', course.column('at'), speed, '%{y:.3~g}')],
      layout: layoutOf(shown, timeAxis(shown), {title: 'tokens per second'}),
    };
  },

  acceptance(shown) {
    const {course, style: {colours}} = shown;
    const at = course.column('at');
    return {
      traces: [
        curve('last steps', colours.accepted, 'solid', at, course.column('acceptance_rate'), '%{y:.1%}'),
        curve('whole run', colours.recovered, 'dash', at, course.column('acceptance_rate_total'), '%{y:.1%}'),
      ],
      layout: layoutOf(shown, timeAxis(shown), {title: 'accepted / drafted', ...SHARE_AXIS}),
    };
  },

  lengths(shown) {
    const steps = shown.figures?.accepted_length_histogram ?? [];
    return {
      traces: [{
        type: 'bar', name: 'steps', x: steps.map((_, length) => length), y: steps,
        marker: {color: shown.style.colours.accepted}, hovertemplate: '%{y}',
      }],
      layout: layoutOf(shown, placesAxis('drafted tokens kept in a step', steps.length), {title: 'steps', ...countAxis(steps)}),
    };
  },

  positions(shown) {
    const rows = shown.figures?.per_position ?? [];
    const share = (name, of, color, dash, symbol) => ({
      ...curve(`accepted / ${of}`, color, dash, rows.map((row) => row.position), rows.map((row) => row[name]),
        `%{y:.1%} (%{customdata[0]} of %{customdata[1]} ${of})`),
      mode: 'lines+markers',
      marker: {size: 8, symbol, color, line: {width: 2, color}},
      customdata: rows.map((row) => [row.accepted, row[of]]),
    });
    const {accepted, recovered} = shown.style.colours;
    return {
      traces: [
        share('survival', 'drafted', accepted, 'solid', 'circle'),
        share('conditional', 'tested', recovered, 'dash', 'diamond-open'),
      ],
      layout: layoutOf(shown, placesAxis('position in the draft', rows.length), {title: 'share accepted', ...SHARE_AXIS}),
    };
  },
};
