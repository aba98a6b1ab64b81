import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Folders of the addon's sources, as binding.gyp lists them. */
const SOURCES = ['', 'executor', 'convert', 'kernels'];
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

/** Object files that are there, and sources. */
export function progressOf(folder) {
  const native = join(folder, 'engine/executors/native');
  const total = SOURCES.flatMap((name) => namesIn(join(native, name), '.cpp')).length;
  const built = join(folder, 'build/Release');
  const objects = existsSync(built) ? readdirSync(built, { recursive: true, encoding: 'utf8' }) : [];
  const done = objects.filter((name) => name.endsWith('.o') || name.endsWith('.obj')).length;
  return { done: Math.min(done, total), total };
}

const namesIn = (folder, end) =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(end)) : [];
