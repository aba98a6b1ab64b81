import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const EVERY_MS = 10_000;

/**
 * Says every ten seconds how many files are compiled, for logs of containers and CI, where nothing moves. Returns the function that ends it.
 * @param folder in which node-gyp works @param say writes a line
 */
export function tellProgress(folder, say, everyMs = EVERY_MS) {
  const startMs = performance.now();
  const timer = setInterval(() => {
    const { done, total } = progressOf(folder);
    const seconds = Math.round((performance.now() - startMs) / 1000);
    say(`compiled ${done} of ${total} files in ${seconds} s`);
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** Object files that are there, and those that the makefiles of node-gyp name: none before it has written them. */
export function progressOf(folder) {
  const build = join(folder, 'build');
  const total = namesIn(build)
    .filter((name) => name.endsWith('.target.mk'))
    .flatMap((name) => readFileSync(join(build, name), 'utf8').match(OBJECT) ?? []).length;
  const done = namesIn(join(build, 'Release'), { recursive: true }).filter((name) =>
    name.endsWith('.o'),
  ).length;
  return { done: Math.min(done, total), total };
}

/** An object file in the list of a makefile. */
const OBJECT = /^\t\$\(obj\)\.target\/\S+\.o\b/gm;

const namesIn = (folder, options) =>
  existsSync(folder) ? readdirSync(folder, { ...options, encoding: 'utf8' }) : [];
