import type { ExpertReading } from '../../callbacks/worker-messages.js';

/** Bytes a second of a disk that nothing had to be read from at the start: of a usual solid-state drive. */
const ASSUMED_BYTES_PER_SECOND = 1e9;

/**
 * What to expect of a model whose experts are read from the disk. Where none of a token's experts is in memory, a sequence gets no more
 * tokens a second than the disk gives; what the system keeps in memory makes it faster.
 */
export function expertReadingNote({
  bytes,
  countedBytes,
  bytesPerToken,
  bytesPerSecond,
}: ExpertReading): string {
  const speed = bytesPerSecond ?? ASSUMED_BYTES_PER_SECOND;
  const source = bytesPerSecond === null ? 'assumed' : 'measured';
  return `Experts are read from the disk: ${megabytes(bytes)}, of which memory is counted for ${megabytes(countedBytes)}; ${megabytes(bytesPerToken)} a token at most, at ${megabytes(speed)}/s (${source}), so at most ${decimals(speed / bytesPerToken)} tokens/s for a sequence whose experts are not in memory.`;
}

const megabytes = (bytes: number) => `${decimals(bytes / 1e6)} MB`;
const decimals = (number: number) => (number < 10 ? number.toFixed(1) : number.toFixed(0));
