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
export function engineFingerprint(
  digest: string,
  { name, instructionSet, options: { kvDtype, maxAttentionWindow, sinkTokenLength } }: Computing,
): string {
  const window = [maxAttentionWindow ?? null, sinkTokenLength ?? null];
  const identity = [digest, skeinVersion(), name, instructionSet, kvDtype, window];
  return `fp_${createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 12)}`;
}

/** Digest of the engine of an executor that knows none itself, such as one of a module; '' where there is no engine. */
export function digestOfPath(enginePath: string): string {
  return existsSync(join(enginePath, 'engine.json')) ? engineDigest(openEngine(enginePath)) : '';
}
