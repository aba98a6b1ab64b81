import { type GuidedRequest, guideFailure } from './guided-request.js';

/** Number of threads that may die in a row without any reply before all guides are given up. */
const MAX_SILENT_THREADS = 3;
/** Number of threads that may die while busy with a guide, and while merely having it. */
const MAX_STRIKES = 2;
const MAX_DEATHS = 10;

const KILLED_IT =
  'The guide has ended the thread that follows guides twice, by what it takes of memory or otherwise; it is given up.';
const NO_THREAD = 'The thread that follows guides cannot be kept running; try again.';

/**
 * Decides what the death of a guide thread means for the requests that have guides: another thread reads the guides
 * again, but one whose threads die time and again is given up.
 */
export class GuideThreadDeaths {
  /** Number of threads in a row that died without any reply. */
  #numSilent = 0;

  /** Notes that the thread has replied. */
  noteWord(): void {
    this.#numSilent = 0;
  }

  /** Notes that a thread has died. It was busy with the guide of `culprit`, if any, and had those of `all`. */
  note(culprit: GuidedRequest | undefined, all: Iterable<GuidedRequest>): void {
    if (culprit !== undefined && ++culprit.strikes === MAX_STRIKES) {
      culprit.failure ??= guideFailure(KILLED_IT, true);
    }
    const isHopeless = ++this.#numSilent > MAX_SILENT_THREADS;
    for (const guided of all) {
      if (++guided.deaths > MAX_DEATHS || isHopeless) guided.failure ??= guideFailure(NO_THREAD, false);
    }
    if (isHopeless) this.#numSilent = 0;
  }
}
