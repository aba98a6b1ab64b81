import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { ModelCode } from '../model-code.js';
import { propertyOf, thrownHead } from '../thrown.js';

/** Milliseconds that are worth the place of an error. */
const LONGEST_MS = 5000;

interface FoundPlace {
  url: string;
  line: number;
  column: number;
}

/**
 * Where code of a model cannot be read, as "model.mjs:2:18"; null: unknown.
 * @param url of the module whose import failed @param thrown what the import failed with
 */
export async function syntaxPlace(code: ModelCode, url: string, thrown: unknown): Promise<string | null> {
  const placed = code.placeOf(thrown);
  if (placed !== null) return placed;
  if (propertyOf(thrown, 'name') !== 'SyntaxError') return null;
  const [line = ''] = thrownHead(thrown).split('\n', 1); // file:///srv/models/squares/1/model.mjs:2
  const head = code.relative(line);
  if (head !== null) return head;
  const found = await placeByReading(url);
  const file = found === null ? null : code.relative(found.url);
  return found === null || file === null ? null : `${file}:${found.line}:${found.column}`;
}

/** Reads the module again in a thread that can tell. Null where it cannot either. */
async function placeByReading(url: string): Promise<FoundPlace | null> {
  const worker = new Worker(new URL('./syntax-worker.js', import.meta.url), { workerData: url });
  let found: FoundPlace | null = null;
  worker.on('message', (place: FoundPlace) => {
    found = place;
  });
  try {
    await once(worker, 'exit', { signal: AbortSignal.timeout(LONGEST_MS) });
  } catch {
    // It ended with an error, or takes too long: the sentence goes without the place.
  }
  void worker.terminate();
  return found;
}
