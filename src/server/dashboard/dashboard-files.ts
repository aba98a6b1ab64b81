/** Files of the page by name, with their types. The build puts them, compressed, into dist/dashboard. */
export const DASHBOARD_FILES = {
  'index.html': 'text/html; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'pdf-worker.js': 'text/javascript; charset=utf-8',
  'cmaps.bin': 'application/octet-stream',
  'code-worker.js': 'text/javascript; charset=utf-8',
  'math.js': 'text/javascript; charset=utf-8',
  'math.css': 'text/css; charset=utf-8',
  'theme.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
  'icon-192.png': 'image/png',
  'icon-512.png': 'image/png',
  'manifest.json': 'application/manifest+json',
} as const;

type NamedFile = keyof typeof DASHBOARD_FILES;

/** A font of formulas: KaTeX's style sheet names each of them. */
export const FONT = /^KaTeX_[\w-]{1,40}\.woff2$/;

/** A file of `DASHBOARD_FILES`, or a font. */
export type DashboardFile = NamedFile | `KaTeX_${string}.woff2`;

export const typeOf = (name: DashboardFile): string =>
  FONT.test(name) ? 'font/woff2' : DASHBOARD_FILES[name as NamedFile];
