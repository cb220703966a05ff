// ---------------------------------------------------------------------------------------------
// inspector.js: what the tooltip is about: the token or figure under the mouse, the finger or the keyboard; and which
// token is chosen, to be explained in the panel.
// ---------------------------------------------------------------------------------------------

class Inspector {
  constructor(live, stream, tooltip, steps) {
    Object.assign(this, {live, stream, tooltip, steps});
    const owner = (event) => event.target.closest?.('.stream .token, [data-explain]');
    live.addEventListener('pointerover', (event) => {
      if (event.pointerType === 'mouse' && !tooltip.pinned) this.inspect(owner(event));
    });
    live.addEventListener('pointerleave', () => tooltip.pinned || tooltip.hide());
    live.addEventListener('click', (event) => this.firstOfTwo(event), {capture: true});
    live.addEventListener('dblclick', () => stream.clicked && steps.choose(stream.clicked));
    live.addEventListener('click', (event) => {
      const clicked = owner(event);
      if (clicked && stream.box.contains(clicked)) {
        tooltip.hide();
        return clicked === steps.token ? steps.close() : steps.choose(clicked);
      }
      const again = clicked && clicked === tooltip.owner && tooltip.pinned;
      this.inspect(again ? null : clicked, {pinned: true});
    });
    live.addEventListener('focusin', (event) => {
      if (event.target.matches('[data-explain]:focus-visible')) this.inspect(event.target, {spoken: true});
    });
    live.addEventListener('focusout', () => tooltip.pinned || tooltip.hide());
    live.addEventListener('keydown', (event) => this.key(event));
    stream.box.addEventListener('scroll', () => this.place(), {passive: true});
    this.outside = (event) => event.composedPath().includes(live) || tooltip.hide();
  }

  start() {
    document.addEventListener('pointerdown', this.outside); // adding it twice is adding it once
  }

  stop() {
    document.removeEventListener('pointerdown', this.outside);
  }

  // Opening or closing the panel moves the text, so the second click of a double click may hit another token, or the panel.
  // It does nothing, and the double click is about the token that the first one hit.
  firstOfTwo(event) {
    const {stream} = this;
    if (event.detail < 2) stream.clicked = stream.box.contains(event.target) ? event.target.closest('.token') : null;
    else if (stream.clicked) event.stopPropagation();
  }

  key(event) {
    const {stream, steps, tooltip} = this;
    if (event.key === 'Escape') return tooltip.owner ? tooltip.hide() : steps.close();
    const within = event.target === stream.box || steps.explain.root.contains(event.target);
    if (!within || event.shiftKey || !/^Arrow(Left|Right|Up|Down)$/.test(event.key)) return;
    event.preventDefault();
    tooltip.hide();
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') steps.move(event.key === 'ArrowRight', true);
    else steps.moveStep(event.key === 'ArrowDown', true);
  }

  inspect(owner, {pinned = false, spoken = false} = {}) {
    if (!owner) return this.tooltip.hide();
    if (owner === this.tooltip.owner && !pinned && !spoken) return;
    const nodes = owner.dataset.explain
      ? [make('p', 'tip-words', owner.dataset.explain)]
      : storyNodes(tokenStory(owner, this.stream.told.get(Number(owner.dataset.step))));
    this.tooltip.show(owner, nodes, pinned);
    if (spoken) this.tooltip.speak();
  }

  // The tokens of a step are replaced when the guess meets its fate; the tooltip goes on with the new one.
  keep() {
    this.steps.keep();
    const {owner, pinned} = this.tooltip;
    if (owner && !owner.isConnected) this.inspect(this.stream.tokenLike(owner.dataset), {pinned});
    else this.place();
  }

  // Beside its owner, or gone if that is out of sight.
  place() {
    const {owner} = this.tooltip;
    if (!owner) return;
    const box = this.stream.box.getBoundingClientRect();
    const {top, bottom} = owner.getBoundingClientRect();
    const outOfSight = this.stream.box.contains(owner) && (bottom < box.top || top > box.bottom);
    if (outOfSight || !owner.checkVisibility()) this.tooltip.hide();
    else this.tooltip.place();
  }
}
