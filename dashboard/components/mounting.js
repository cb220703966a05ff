// ---------------------------------------------------------------------------------------------
// mounting.js: Streamlit's calls of a component -> one view for as long as its place is there.
//
// A view has `root`, `top`, its outermost element, and `update(component)`; `rest()` stops what runs by itself until the next
// update; `close()` gives it up.
// ---------------------------------------------------------------------------------------------

// `views` survives remounts: key -> view.
function mountView(views, component, View) {
  const {key, parentElement} = component;
  if (!parentElement.isConnected) return () => {}; // a late call for a place that is gone
  let view = views.get(key);
  if (view?.root !== parentElement || !view.top.isConnected) {
    view?.close();
    view = Object.assign(new View(parentElement), {generation: 0, given: null});
    views.set(key, view);
  }
  const generation = ++view.generation;
  const before = view.given; // what Streamlit called with last
  view.given = component;
  view.update(component);
  // The cleanup comes when the place is gone, or at once, if Streamlit has made this call late, behind one with newer
  // data: then that holds again. Only the latest call may do either.
  return () => {
    if (view.generation !== generation) return;
    if (view.root.isConnected && before) {
      view.given = before;
      view.update(before);
    } else view.rest();
    requestAnimationFrame(() => {
      if (view.generation !== generation || view.root.isConnected) return;
      view.close();
      if (views.get(key) === view) views.delete(key);
    });
  };
}
