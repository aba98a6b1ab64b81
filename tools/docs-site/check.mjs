// Checks the built site: every link of a page leads to a page and a heading that there are, and no page loads anything from
// elsewhere, so that the site works without a network.
//
//     node check.mjs [FOLDER]
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = process.argv[2] ?? fileURLToPath(new URL('../../.docs-site', import.meta.url));
const base = process.env.SKEIN_DOCS_BASE ?? '/';
const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.html'),
);
const textOf = new Map(pages.map((path) => [path, readFileSync(join(folder, path), 'utf8')]));
const anchors = new Map([...textOf].map(([path, text]) => [path, new Set(matches(text, /\bid="([^"]+)"/g))]));

const problems = pages.flatMap((page) => {
  const text = textOf.get(page);
  const loaded = matches(text, /<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)="([^"]+)"/g);
  const elsewhere = loaded.filter((address) => /^(https?:)?\/\//.test(address));
  const links = matches(text, /<a\b[^>]*?\bhref="([^"]+)"/g).filter(
    (address) => !/^(https?|mailto):/.test(address),
  );
  return [
    ...elsewhere.map((address) => `${page} loads ${address}`),
    ...loaded.filter((address) => !elsewhere.includes(address)).flatMap((address) => faultsOf(page, address)),
    ...links.flatMap((address) => faultsOf(page, address)),
  ];
});
for (const style of readdirSync(join(folder, 'assets')).filter((name) => name.endsWith('.css'))) {
  const text = readFileSync(join(folder, 'assets', style), 'utf8');
  for (const address of matches(text, /url\(["']?(https?:[^"')]+)/g))
    problems.push(`${style} loads ${address}`);
}
for (const problem of problems) console.error(problem);
console.log(`${pages.length} pages, ${problems.length} problems`);
process.exitCode = pages.length > 40 && problems.length === 0 ? 0 : 1;

function faultsOf(page, address) {
  const [path, anchor] = decodeURI(address).split('#', 2);
  const absolute = path.startsWith(base) ? path.slice(base.length) : posix.join(posix.dirname(page), path);
  let file = path === '' ? page : absolute;
  if (file === '' || file.endsWith('/')) file += 'index.html';
  if (!existsSync(join(folder, file)) && existsSync(join(folder, `${file}.html`))) file += '.html';
  if (!existsSync(join(folder, file)) || !statSync(join(folder, file)).isFile())
    return [`${page}: ${address}: no ${file}`];
  if (anchor === undefined || anchor === '' || !file.endsWith('.html')) return [];
  return anchors.get(file).has(anchor) ? [] : [`${page}: ${address}: ${file} has no #${anchor}`];
}

function matches(text, pattern) {
  return Array.from(text.matchAll(pattern), ([, found]) =>
    found.replaceAll('&amp;', '&').replaceAll('&#39;', "'"),
  );
}
