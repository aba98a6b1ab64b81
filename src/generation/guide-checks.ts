import { checkedGrammar } from '../../engine/guided/check-grammar.js';
import { GuideError } from '../../engine/guided/grammar.js';
import { type Guide, guideGrammar } from '../../engine/guided/guide.js';
import { HelperBusyError, HelperError, HelperPool, HelperTimeError } from '../../models/helper-pool.js';

/** Guides up to this many UTF-16 units are checked at once: the worst of them takes some 30 ms, most a fraction of one. */
const MAX_LENGTH_HERE = 512;
/** What the longest guides take is a hundredth of it; a few patterns multiply what they are made of. */
const TIME_LIMIT_MS = 10_000;
/** Guides that were found right, by the time of their last use: clients send the same ones again and again. */
const MAX_KNOWN = 64;

/** Says whether a guide can be followed, as far as that can be told without the vocabulary. @throws GuideError */
export function checkGuideHere(guide: Guide): void {
  try {
    checkedGrammar(guideGrammar(guide));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new GuideError(
      'The guide has more parts in one another, or beside one another, than can be followed.',
    );
  }
}

export interface GuideChecksOptions {
  /** Longer guides are checked in a thread. Default 512 UTF-16 units. */
  maxLengthHere?: number;
  /** Milliseconds that a check in the thread may take; default 10,000. */
  timeLimitMs?: number;
}

/** Checks guides: short ones here, long ones in a thread of their own, so that none holds up the thread that asks. */
export class GuideChecks {
  readonly #maxLengthHere: number;
  readonly #helpers: HelperPool<Guide, true>;
  readonly #known = new Set<string>();

  constructor({ maxLengthHere = MAX_LENGTH_HERE, timeLimitMs = TIME_LIMIT_MS }: GuideChecksOptions = {}) {
    this.#maxLengthHere = maxLengthHere;
    const script = new URL('./guide-check-worker.js', import.meta.url);
    this.#helpers = new HelperPool({ script, timeLimitMs });
  }

  /** @throws GuideError where the guide cannot be followed; HelperBusyError where too many wait. */
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
    if (guide.guide.length <= this.#maxLengthHere) {
      checkGuideHere(guide);
      return;
    }
    try {
      await this.#helpers.run(guide);
    } catch (error) {
      if (error instanceof HelperBusyError) throw error;
      if (error instanceof HelperTimeError) {
        throw new GuideError(`The guide is too much work to follow. To check it: ${error.message}`);
      }
      if (error instanceof HelperError && error.name === 'GuideError') throw new GuideError(error.message);
      throw error;
    }
  }
}
