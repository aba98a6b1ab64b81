import { type GuidedRequest, guideFailure } from './guided-request.js';

/** Threads that end one after the other without a word before all is given up. */
const MAX_SILENT_THREADS = 3;
/** Threads that may end while they are busy with a guide, and while they have it. */
const MAX_STRIKES = 2;
const MAX_DEATHS = 10;

const KILLED_IT =
  'The guide has ended the thread that follows guides twice, by what it takes of memory or otherwise; it is given up.';
const NO_THREAD = 'The thread that follows guides cannot be kept running; try again.';

/**
 * What the ends of threads that follow guides mean for the requests that have some: another thread reads them again, but
 * one that ends its thread time and again is given up.
 */
export class GuideThreadDeaths {
  /** Threads in a row that have said nothing. */
  #numSilent = 0;

  /** The thread has said something. */
  noteWord(): void {
    this.#numSilent = 0;
  }

  /** A thread has ended, which was busy with the guide of `culprit`, where it was with one, and had those of `all`. */
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
