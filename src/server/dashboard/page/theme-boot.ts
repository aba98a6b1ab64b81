// Before the first paint: what the switch was set to. A script of its own, since the page's comes after the document.
try {
  const chosen = localStorage.getItem('skein-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is not allowed here: the system's preference it is.
}
