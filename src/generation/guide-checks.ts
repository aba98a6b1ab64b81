import { createHash } from 'node:crypto';
import type { Guide } from '../../callbacks/guide.js';
import { GuideError } from '../../engine/guided/grammar.js';
import { readGuide } from '../../engine/guided/read-guide.js';
import { ReadingWorkError } from '../../engine/guided/reading-work.js';
import { HelperBusyError, HelperError, HelperPool, HelperTimeError } from '../../models/helper-pool.js';
import { GuideCheckTimeError } from '../errors/request-errors.js';

/**
 * Most UTF-16 units of a guide that is checked in this thread, provided that takes no more steps than the next limit: a
 * few milliseconds.
 */
const MAX_LENGTH_HERE = 512;
const MAX_WORK_HERE = 10_000;
/**
 * Milliseconds for a check in the thread. Work is limited by steps, so only a stalled machine takes so long.
 */
const TIME_LIMIT_MS = 60_000;
/**
 * Number of valid guides remembered, by last use: clients send the same ones again and again. A request may have a guide
 * for each of 512 tools, and with fewer places than that none of them would be found again.
 */
const MAX_KNOWN = 4096;

const GUIDE_ERRORS: ReadonlySet<string> = new Set(['SKEIN_GUIDE', 'SKEIN_GUIDE_READING_WORK']);

/**
 * Checks whether a guide can be followed, as far as possible without the vocabulary. Returns sentences about what of it is left out.
 * @throws GuideError
 */
export function checkGuideHere(guide: Guide): readonly string[] {
  return readGuide(guide).leftOut ?? [];
}

export interface GuideChecksOptions {
  /** UTF-16 units above which guides are checked in the thread; default 512. */
  maxLengthHere?: number;
  /** Steps above which guides are checked in the thread; default 10,000. */
  maxWorkHere?: number;
  /** Milliseconds that a check in the thread may take; default 60,000. */
  timeLimitMs?: number;
}

/**
 * Checks guides: short ones here, long ones in a thread of their own, so that none blocks the calling thread.
 */
export class GuideChecks {
  readonly #maxLengthHere: number;
  readonly #maxWorkHere: number;
  readonly #helpers: HelperPool<Guide, readonly string[]>;
  /** What is left out of guides, by their digests, since guides are long. */
  readonly #known = new Map<string, readonly string[]>();

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

  /**
   * Checks a guide. Returns as checkGuideHere. @throws GuideError where it cannot be followed; HelperBusyError where too many wait,
   * GuideCheckTimeError.
   */
  async check(guide: Guide): Promise<readonly string[]> {
    const key = createHash('sha256').update(guide.type).update(' ').update(guide.guide).digest('base64');
    const leftOut = this.#known.get(key) ?? (await this.#checkNew(guide));
    this.#known.delete(key);
    this.#known.set(key, leftOut);
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!);
    return leftOut;
  }

  close(): Promise<void> {
    return this.#helpers.close();
  }

  async #checkNew(guide: Guide): Promise<readonly string[]> {
    const found = guide.guide.length <= this.#maxLengthHere ? this.#checkedHere(guide) : null;
    if (found !== null) return found;
    try {
      return await this.#helpers.run(guide);
    } catch (error) {
      if (error instanceof HelperBusyError) throw error;
      // The time depends on other work of the machine, so the guide is not at fault.
      if (error instanceof HelperTimeError)
        throw new GuideCheckTimeError('The guide could not be checked in time; try again later.');
      if (error instanceof HelperError && GUIDE_ERRORS.has(error.failure.code ?? ''))
        throw new GuideError(error.message);
      throw error;
    }
  }

  /** Checks a guide in this thread; null where that takes too many steps. */
  #checkedHere(guide: Guide): readonly string[] | null {
    try {
      return readGuide(guide, this.#maxWorkHere).leftOut ?? [];
    } catch (error) {
      if (error instanceof ReadingWorkError) return null;
      throw error;
    }
  }
}
