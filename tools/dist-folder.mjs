// `begin` empties .dist-next, where a build is made; `publish` makes dist what lies there. A server that runs from dist is not
// disturbed: a file that has not changed is left alone, another one appears by a rename, and nothing is missing in between.
//
// A server reads parts of its command line (dist/bin/<part>-<hash>.js) when they are first needed, by the names that it was
// built with. Those that a new build has not are kept for a week, and are no part of the package: dist/bin/.npmignore.
//
// dist/built-from.json says which commit was built, so that a release can refuse another one.
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const KEPT_MS = 7 * 24 * 60 * 60 * 1000;
const PART = /^bin\/[\w.-]+-[A-Z0-9]{8}\.js$/;
const IGNORED = 'bin/.npmignore';

/** Makes `dist` what `next` is, which is gone after that. */
export function publish(next, dist, now = Date.now()) {
  const made = filesOf(next);
  const kept = keptParts(dist, new Set(made), now);
  if (kept.length > 0) {
    // Below the folder's name, as npm reads it.
    writeFileSync(join(next, IGNORED), kept.map((file) => `/${file.slice('bin/'.length)}\n`).join(''));
    made.push(IGNORED);
  }
  // A file comes before those that import it: parts and workers first, the file that starts all of them last.
  for (const file of made.sort((a, b) => order(a) - order(b))) {
    const target = join(dist, file);
    if (isSame(join(next, file), target)) continue;
    mkdirSync(dirname(target), { recursive: true });
    renameSync(join(next, file), target);
  }
  const wanted = new Set([...made, ...kept]);
  for (const file of filesOf(dist)) if (!wanted.has(file)) rmSync(join(dist, file), { force: true });
  removeEmptyFolders(dist);
  rmSync(next, { recursive: true, force: true });
}

/** The file in dist that says what it was built from: { commit, isClean }. */
export const BUILT_FROM = 'built-from.json';

/**
 * The commit of a checkout, and whether nothing was changed since; null where git reports none.
 * @param {string} root @returns {{ commit: string, isClean: boolean } | null}
 */
export function checkedOut(root) {
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    return { commit: git('rev-parse', 'HEAD'), isClean: git('status', '--porcelain') === '' };
  } catch {
    return null;
  }
}

/** Parts of earlier builds that a server may still ask for; their times say since when no build has them. */
function keptParts(dist, made, now) {
  const known = new Set(
    textOf(join(dist, IGNORED))
      .split('\n')
      .map((line) => `bin${line}`),
  );
  return filesOf(dist).filter((file) => {
    if (made.has(file) || !PART.test(file)) return false;
    const path = join(dist, file);
    if (known.has(file)) return now - statSync(path).mtimeMs < KEPT_MS;
    utimesSync(path, now / 1000, now / 1000);
    return true;
  });
}

function order(file) {
  if (PART.test(file)) return 0;
  return /^bin\/(cli|skein)\.js$/.test(file) ? 2 : 1;
}

function isSame(one, other) {
  try {
    return readFileSync(one).equals(readFileSync(other)) && statSync(one).mode === statSync(other).mode;
  } catch {
    return false;
  }
}

function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Paths of all files, relative to the folder; none where it is not there. */
function filesOf(folder, below = '') {
  let entries;
  try {
    entries = readdirSync(join(folder, below), { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    return entry.isDirectory() ? filesOf(folder, path) : [path];
  });
}

function removeEmptyFolders(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const path = join(folder, entry.name);
    removeEmptyFolders(path);
    try {
      rmdirSync(path);
    } catch {
      // It holds something.
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const next = join(root, '.dist-next');
  if (process.argv[2] === 'begin') {
    rmSync(next, { recursive: true, force: true });
    mkdirSync(next);
    // At the beginning: what is changed while it is built may be in it or not.
    writeFileSync(join(next, BUILT_FROM), `${JSON.stringify(checkedOut(root))}\n`);
  } else publish(next, join(root, 'dist'));
}
