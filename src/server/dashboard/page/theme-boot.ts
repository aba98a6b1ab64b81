// Sets the chosen theme before the first paint. It is a script of its own, since the page's script runs after the
// document.
try {
  const chosen = localStorage.getItem('skein-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage the system's preference holds.
}
