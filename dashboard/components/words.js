// ---------------------------------------------------------------------------------------------
// words.js: numbers and outcomes as a reader sees them. Formats what the server computed.
// ---------------------------------------------------------------------------------------------

const NOT_AVAILABLE = 'n/a';
const MOST_DIGITS = 17; // of a number between 0 and 1; no two differ only behind them

const STATES = {
  idle: 'Ready',
  starting: 'Loading the model',
  prefill: 'Reading the prompt',
  loading: 'Loading the run',
  running: 'Running',
  paused: 'Paused',
  finished: 'Finished',
  replay: 'Replay',
  lost: 'Not in memory',
};

const REASONS = {
  end_token: 'end token',
  stop_string: 'stop string found',
  length: 'length limit reached',
  context: 'context is full',
  cancelled: 'stopped',
  error: 'ended by an error',
};

// In the order of a token's life.
const OUTCOMES = {
  guess: 'Drafted, not judged yet.',
  accepted: 'Drafted, and the rule kept it.',
  rejected: 'Drafted, and the rule refused it: the first refusal of its step.',
  declined: 'Drafted in a tree, and the rule refused it; a guess beside it was tried next.',
  unreached: 'Drafted after the rejected token, or on a branch that was not taken, so it is lost.',
  recovered: "The target's replacement for the rejected token.",
  bonus: 'The extra token the target gives when the draft, or a branch of a tree, was kept to its end.',
  plain: 'A token of the target in a step that drafted nothing.',
  discarded: 'Kept or given by the target, then cut by an end token, a stop string or a limit.',
};

function number(value, digits = 3) {
  if (value === null || value === undefined) return NOT_AVAILABLE;
  const whole = Math.trunc(Math.abs(Number(value.toPrecision(digits)))); // rounded first: 99.97 is 100, not 100.0
  return whole >= 1000 ? Math.round(value).toLocaleString('en-US') : value.toFixed(Math.max(0, digits - String(whole).length));
}

function fixed(value, digits) {
  return value === null || value === undefined ? NOT_AVAILABLE : value.toFixed(digits);
}

function count(value) {
  return value === null || value === undefined ? NOT_AVAILABLE : value.toLocaleString('en-US');
}

function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

function percent(value, digits = 1) {
  return value === null || value === undefined ? NOT_AVAILABLE : `${(100 * value).toFixed(digits)}%`;
}

// Four digits, and more where fewer would make it look like 1, or like the number that it is held against, and it is not.
function probability(value, against = null) {
  if (value === null || value === undefined) return NOT_AVAILABLE;
  const others = [1, against].filter((other) => other !== null && other !== value);
  let digits = 4;
  while (digits < MOST_DIGITS && others.some((other) => decimal(other, digits) === decimal(value, digits))) digits++;
  return decimal(value, digits);
}

function decimal(value, digits) {
  return value !== 0 && value < 0.00005 ? value.toExponential(digits - 3) : value.toFixed(digits);
}

function seconds(value) {
  if (value === null || value === undefined) return NOT_AVAILABLE;
  return value < 1 ? `${number(1000 * value)} ms` : `${number(value)} s`;
}

// The text between quotation marks, with everything invisible spelled out.
function quoted(text) {
  const spelled = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const short = {'\n': '\\n', '\t': '\\t', '\r': '\\r', '\u200d': '\u200d'}[character];
    return short ?? `\\u{${character.codePointAt(0).toString(16)}}`;
  });
  return `“${spelled}”`;
}

function sentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : '';
}
