/** What the page looks like: as the system says, unless the switch says otherwise. */
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

/** The system's own choice is not stored: it may change with the time of day. */
export function setTheme(chosen: Theme): void {
  const isSystem = chosen === (system.matches ? 'dark' : 'light');
  if (isSystem) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    if (isSystem) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, chosen);
  } catch {
    // Storage is not allowed here: it holds until the page is left.
  }
  tell();
}

/** Canvases have to be drawn again: their colours are not the style sheet's. */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The colour of a design token (`--generating`) as a canvas takes it, in the theme of now. */
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
