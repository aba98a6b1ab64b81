import { fingerprintWithAdapter } from '../../engine/peft/adapter-fingerprint.js';
import type { ModelCard } from '../nats/beat.js';

/**
 * Fingerprint of a worker's engine, as its answers carry it.
 *
 * @param adapter name of the adapter that it answers with
 * @returns null where it has no adapter of this name
 */
export function cardFingerprint({ info, adapters }: ModelCard, adapter?: string): string | null {
  const engine = String(info.fingerprint ?? '');
  if (adapter === undefined) return engine;
  const own = adapters.find(({ name }) => name === adapter);
  return own === undefined ? null : fingerprintWithAdapter(engine, own.digest);
}

/** The fingerprint is that of a worker's answers, with the adapter, or of its engine without. */
export function isNameOfEngine(fingerprint: string, card: ModelCard, adapter?: string): boolean {
  return cardFingerprint(card) === fingerprint || cardFingerprint(card, adapter) === fingerprint;
}

/** Number of workers of each fingerprint, over these pools, of those that have the adapter. */
export function countFingerprints(
  pools: Iterable<{ model: ModelCard; takers: { readonly size: number } }>,
  adapter?: string,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { model, takers } of pools) {
    const fingerprint = cardFingerprint(model, adapter);
    if (fingerprint !== null) counts.set(fingerprint, (counts.get(fingerprint) ?? 0) + takers.size);
  }
  return counts;
}
