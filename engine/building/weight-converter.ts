import { setImmediate } from 'node:timers/promises';
import type { ConvertJob } from '../executors/native/addon.js';
import { loadAddon, nativeAddonAvailable } from '../executors/native/load-addon.js';

/**
 * Converts tensors of checkpoint files into a file of its final size. Throws naming the file that is at fault; with the
 * signal's reason where that is aborted.
 */
export type ConvertWeights = (
  target: string,
  jobs: readonly ConvertJob[],
  options: { threads: number; signal?: AbortSignal | undefined },
) => Promise<void>;

/** The addon's threads where there is an addon; otherwise TypeScript, which writes the same bytes. */
export function weightConverter(): ConvertWeights {
  return nativeAddonAvailable() ? convertNatively : convertPortably;
}

const convertNatively: ConvertWeights = async (target, jobs, { threads, signal }) => {
  loadAddon().convert(target, [...jobs], threads);
  await eventLoopTurn();
  signal?.throwIfAborted();
};

/** Milliseconds of work between two looks at the signal and the event loop. */
const MS_PER_TURN = 50;

export const convertPortably: ConvertWeights = async (target, jobs, { threads, signal }) => {
  const { convertInPieces } = await import('../executors/portable/convert/convert.js');
  let turnMs = performance.now();
  for (const _ of convertInPieces(target, jobs, threads)) {
    if (performance.now() - turnMs < MS_PER_TURN) continue;
    await eventLoopTurn();
    signal?.throwIfAborted();
    turnMs = performance.now();
  }
  await eventLoopTurn();
  signal?.throwIfAborted();
};

/** Signals and timers have their turn. One immediate may run in the turn that is under way, after its look at events. */
async function eventLoopTurn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
