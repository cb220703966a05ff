// ---------------------------------------------------------------------------------------------
// timeline.js: a run as a row of steps: which entries of its log make the state after k of them, and when that was.
// ---------------------------------------------------------------------------------------------

class Timeline {
  entries = 0;
  ends = [0]; // ends[k]: entries of the state after k steps
  guesses = []; // guesses[k]: entries of the state in which step k is drafted and not judged yet; none if it drafted nothing
  points = []; // points[k]: where the run stood after step k; `at` is the run's own clock, in seconds

  add([kind, index, ...rest]) {
    this.entries++;
    if (kind === 'prompt') this.ends[0] = this.entries;
    else if (kind === 'draft') {
      const [tokens] = rest;
      if (tokens.length) this.guesses[index] = this.entries;
    } else {
      this.ends.push(this.entries);
      this.points.push(rest.at(-1));
    }
  }

  get steps() {
    return this.points.length;
  }

  // Entries of the state after that many steps, or of the guess that follows it. The end has whatever came after the last step.
  entriesAt(steps, guess = false) {
    if (steps >= this.steps) return this.entries;
    return (guess && this.guesses[steps]) || this.ends[steps];
  }

  // Steps whose fate is among the first entries.
  stepsIn(entries) {
    let low = 0;
    let high = this.steps;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.ends[middle] <= entries) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // Seconds that step k took, by the run's own clock; of the first one with the reading of the prompt.
  secondsOf(step) {
    return this.points[step].at - (this.points[step - 1]?.at ?? 0);
  }
}
