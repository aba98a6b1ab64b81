import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { skeinVersion } from '../../base/package-info.js';
import type { Executor } from '../executors/executor.js';
import { openEngine } from './engine.js';
import { engineDigest } from './engine-digest.js';

/** What of an executor decides the bits of answers. */
type Computing = Pick<Executor, 'name' | 'instructionSet' | 'options'>;

/**
 * Fingerprint of a running engine, as answers carry it: two engines with the same one give the same answers to the same
 * requests. It covers the content of the engine, the version of Skein, the executor and its instruction set, the precision
 * of the KV cache and the attention window. What changes no bit is not in it: threads, ranks, blocks, batches, a draft.
 *
 * @param digest see engineDigest
 */
export function engineFingerprint(digest: string, executor: Computing): string {
  return `fp_${digestOf(whatDecides(digest, executor)).slice(0, 12)}`;
}

/**
 * Digest of all that decides the bits in a block of the KV cache, as hexadecimal digits: an engine may read the blocks of another one
 * with the same.
 */
export function cacheIdentity(digest: string, executor: Computing): string {
  const { tokensPerBlock } = executor.options;
  return digestOf([...whatDecides(digest, executor), tokensPerBlock]);
}

/** Sets and caches whose bits are others than those of an earlier Skein of the same version. */
const CHANGED_BITS: Readonly<Record<string, string>> = {
  amx: 'amx, tiles of cut bf16',
  int8: 'int8, keys turned',
};
const nameOfBits = (name: string) => CHANGED_BITS[name] ?? name;

function whatDecides(
  digest: string,
  { name, instructionSet, options: { kvDtype, maxAttentionWindow, sinkTokenLength } }: Computing,
): unknown[] {
  const window = [maxAttentionWindow ?? null, sinkTokenLength ?? null];
  return [digest, skeinVersion(), name, nameOfBits(instructionSet), nameOfBits(kvDtype), window];
}

function digestOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/** Digest of the engine of an executor that knows none itself, such as one of a module; '' where there is no engine. */
export function digestOfPath(enginePath: string): string {
  return existsSync(join(enginePath, 'engine.json')) ? engineDigest(openEngine(enginePath)) : '';
}
