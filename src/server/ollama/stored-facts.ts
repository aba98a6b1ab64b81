import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ModelFacts, readModelFacts } from '../../serving/model-facts.js';
import { ModelLoadError, reasonFor } from '../../serving/model-load-error.js';
import type { StoredModel } from '../../serving/on-demand/model-store.js';

/** Models whose facts are kept. */
const KEPT = 64;

/** By path and digest, in the order of their last use. */
const kept = new Map<string, Promise<ModelFacts>>();
/** The read that is the last in turn: one takes up to a tenth of a second, since a header holds the vocabulary. */
let lastInTurn: Promise<unknown> = Promise.resolve();

/** What the files of a model say that is not loaded, read once for all who ask. @throws ModelLoadError where they are wrong */
export function factsOfStored(stored: StoredModel): Promise<ModelFacts> {
  const key = `${stored.path}\0${stored.digest}`;
  const known = kept.get(key);
  kept.delete(key);
  const facts = known ?? readInTurn(stored);
  kept.set(key, facts);
  if (known === undefined) facts.catch(() => kept.delete(key));
  if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
  return facts;
}

function readInTurn({ name, path }: StoredModel): Promise<ModelFacts> {
  const reading = lastInTurn.then(async () => {
    await nextTurn();
    try {
      return readModelFacts(path);
    } catch (error) {
      const reason = reasonFor(error, { name, path });
      throw new ModelLoadError('failed', `The model '${name}' cannot be read: ${reason}`, { cause: error });
    }
  });
  lastInTurn = reading.catch(() => {});
  return reading;
}
