import { setImmediate } from 'node:timers/promises';
import type { ConvertJob } from '../directory/convert-job.js';
import { loadAddon, nativeAddonAvailable } from '../executors/native/load-addon.js';

/**
 * Converts tensors of checkpoint files into a file of its final size. Throws an error naming the file that is at fault,
 * or the signal's reason if that is aborted.
 */
export type ConvertWeights = (
  target: string,
  jobs: readonly ConvertJob[],
  options: { threads: number; signal?: AbortSignal | undefined },
) => Promise<void>;

/** Converter that runs in the addon's threads or, without an addon, in TypeScript, which writes the same bytes. */
export function weightConverter(): ConvertWeights {
  return nativeAddonAvailable() ? convertNatively : convertPortably;
}

const convertNatively: ConvertWeights = async (target, jobs, { threads, signal }) => {
  loadAddon().convert(target, [...jobs], threads);
  await eventLoopTurn();
  signal?.throwIfAborted();
};

/** Milliseconds of work before the signal and the event loop are checked again. */
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

/**
 * Lets signals and timers have their turn. Awaits two immediates, because one may still run in the current turn, after
 * its look at events.
 */
async function eventLoopTurn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
