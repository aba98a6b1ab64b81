/** Look of the page: the system's, unless the switch says otherwise. */
export type Theme = 'light' | 'dark';

const STORED = 'skein-theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

system.addEventListener('change', () => tell());

export function theme(): Theme {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return system.matches ? 'dark' : 'light';
}

/** Sets the theme. The system's own theme is not stored: it may change with the time of day. */
export function setTheme(chosen: Theme): void {
  const isSystem = chosen === (system.matches ? 'dark' : 'light');
  if (isSystem) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    if (isSystem) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, chosen);
  } catch {
    // Without storage the choice holds until the page is left.
  }
  tell();
}

/**
 * Calls the listener when the theme changes: canvases have to be drawn again, since style sheets do not colour them.
 */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Colour of a design token (`--generating`) for a canvas, in the present theme. */
export function tokenColour(name: `--${string}`): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function tell(): void {
  for (const listener of [...listeners]) listener();
}
