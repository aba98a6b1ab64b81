import { readFileSync } from 'node:fs';
import { messageOf } from '../../base/error-text.js';
import { faultOfWeights, MAX_WEIGHT } from '../../cluster/routing/pool-weights.js';
import { UsageError } from '../errors/user-errors.js';

const FORM = 'it must be weights by system_fingerprint, as in fp_a=95,fp_b=5, or @FILE with one on each line';

/** Weights of --pool-weights by the fingerprints of engines; none where it is not given. @throws UsageError */
export function readPoolWeights(given: string | undefined): ReadonlyMap<string, number> {
  if (given === undefined) return new Map();
  const lines = given.startsWith('@') ? linesOf(given.slice(1)) : given.split(',');
  const weights = new Map<string, number>();
  for (const line of lines) {
    const [, engine, number] = /^\s*([\w-]{1,64})\s*=\s*(\d+(?:\.\d+)?)\s*$/.exec(line) ?? [];
    const weight = Number(number);
    if (engine === undefined || weight > MAX_WEIGHT)
      throw new UsageError(
        `--pool-weights has "${line.trim().slice(0, 100)}"; ${FORM}, from 0 to ${MAX_WEIGHT}.`,
      );
    if (weights.has(engine)) throw new UsageError(`--pool-weights names ${engine} twice.`);
    weights.set(engine, weight);
  }
  const fault = faultOfWeights(weights);
  if (fault !== null) throw new UsageError(`--pool-weights ${fault}`);
  return weights;
}

/** Lines with a weight: blank ones and those after # are left out. */
function linesOf(file: string): string[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`--pool-weights: ${file} cannot be read: ${messageOf(error)}.`);
  }
  return text.split('\n').flatMap((line) => {
    const told = line.replace(/#.*/, '').trim();
    return told === '' ? [] : [told];
  });
}
