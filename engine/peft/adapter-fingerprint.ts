import { createHash } from 'node:crypto';
import { type InParts, runToEnd } from '../../base/run-to-end.js';
import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';

/** Digest of an adapter's content: two adapters with the same one change a model in the same way. */
export function fingerprintOf(weights: AdapterWeights): string {
  return runToEnd(fingerprintInParts(weights));
}

/** The same in parts, a module-layer each, which yield the number of their values. */
export function* fingerprintInParts({ moduleLayers }: Pick<AdapterWeights, 'moduleLayers'>): InParts<string> {
  const hash = createHash('sha256');
  for (const { layer, module, rank, a, b } of moduleLayers) {
    hash.update(`${layer} ${module} ${rank} ${a.length} ${b.length} `);
    for (const { buffer, byteOffset, byteLength } of [a, b]) {
      hash.update(new Uint8Array(buffer, byteOffset, byteLength));
    }
    yield a.length + b.length;
  }
  return hash.digest('base64');
}

/** Fingerprint of an engine that answers with an adapter. @param digest of the adapter's weights */
export function fingerprintWithAdapter(engine: string, digest: string): string {
  return `fp_${createHash('sha256').update(`${engine}\0${digest}`).digest('hex').slice(0, 12)}`;
}

/**
 * Salt under which the blocks of a request with an adapter are kept. A task may get other weights once it is
 * unused, so the task's number in the key of its blocks is not enough: blocks computed with the former
 * weights must not be found.
 */
export function saltWithAdapter(salt: bigint, fingerprint: string): bigint {
  return createHash('sha256').update(`${salt} ${fingerprint}`).digest().readBigUInt64LE();
}
