import type { Guide } from '../../callbacks/guide.js';
import { GuideError } from '../../engine/guided/grammar.js';
import { readGuide } from '../../engine/guided/read-guide.js';
import { ReadingWorkError } from '../../engine/guided/reading-work.js';
import { HelperBusyError, HelperError, HelperPool, HelperTimeError } from '../../models/helper-pool.js';
import { GuideCheckTimeError } from './errors.js';

/** Guides up to this many UTF-16 units are checked at once, as long as that takes no more steps than these: a few milliseconds. */
const MAX_LENGTH_HERE = 512;
const MAX_WORK_HERE = 10_000;
/** Work is counted, so this is for a machine that stands still: what takes most is done in a small part of it. */
const TIME_LIMIT_MS = 60_000;
/** Guides that were found right, by the time of their last use: clients send the same ones again and again. */
const MAX_KNOWN = 64;

const GUIDE_ERRORS: ReadonlySet<string> = new Set(['SKEIN_GUIDE', 'SKEIN_GUIDE_READING_WORK']);

/** Says whether a guide can be followed, as far as that can be told without the vocabulary. @throws GuideError */
export function checkGuideHere(guide: Guide): void {
  readGuide(guide);
}

export interface GuideChecksOptions {
  /** Longer guides are checked in a thread. Default 512 UTF-16 units. */
  maxLengthHere?: number;
  /** So are those that take more steps to read. Default 10,000. */
  maxWorkHere?: number;
  /** Milliseconds that a check in the thread may take; default 60,000. */
  timeLimitMs?: number;
}

/** Checks guides: short ones here, long ones in a thread of their own, so that none holds up the thread that asks. */
export class GuideChecks {
  readonly #maxLengthHere: number;
  readonly #maxWorkHere: number;
  readonly #helpers: HelperPool<Guide, true>;
  readonly #known = new Set<string>();

  constructor({
    maxLengthHere = MAX_LENGTH_HERE,
    maxWorkHere = MAX_WORK_HERE,
    timeLimitMs = TIME_LIMIT_MS,
  }: GuideChecksOptions = {}) {
    this.#maxLengthHere = maxLengthHere;
    this.#maxWorkHere = maxWorkHere;
    const script = new URL('./guide-check-worker.js', import.meta.url);
    this.#helpers = new HelperPool({ script, timeLimitMs });
  }

  /** @throws GuideError where the guide cannot be followed; HelperBusyError where too many wait, GuideCheckTimeError. */
  async check(guide: Guide): Promise<void> {
    const key = `${guide.type} ${guide.guide}`;
    if (!this.#known.delete(key)) await this.#checkNew(guide);
    this.#known.add(key);
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.values().next().value!);
  }

  close(): Promise<void> {
    return this.#helpers.close();
  }

  async #checkNew(guide: Guide): Promise<void> {
    if (guide.guide.length <= this.#maxLengthHere && this.#isCheckedHere(guide)) return;
    try {
      await this.#helpers.run(guide);
    } catch (error) {
      if (error instanceof HelperBusyError) throw error;
      // How long it takes depends on what else the machine does, so that is no fault of the guide.
      if (error instanceof HelperTimeError)
        throw new GuideCheckTimeError('The guide could not be checked in time; try again later.');
      if (error instanceof HelperError && GUIDE_ERRORS.has(error.failure.code ?? ''))
        throw new GuideError(error.message);
      throw error;
    }
  }

  /** False: it takes too many steps for this thread. */
  #isCheckedHere(guide: Guide): boolean {
    try {
      readGuide(guide, this.#maxWorkHere);
      return true;
    } catch (error) {
      if (error instanceof ReadingWorkError) return false;
      throw error;
    }
  }
}
