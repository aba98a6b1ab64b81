/**
 * Rules of how often a request is begun.
 *
 * A request whose engine is lost continues in another one. Where that happens again and again, it may be the
 * request that kills them.
 */
export interface AttemptRules {
  /** Attempts in a row that ended with their engine, and brought no token, after which no more follow. */
  maxFruitlessAttempts: number;
  /** Attempts that ended with their engine, with tokens or without, after which no more follow. */
  maxLostAttempts: number;
  /** Attempts of whatever end. */
  maxAttempts: number;
}

export const ATTEMPT_RULES: AttemptRules = {
  maxFruitlessAttempts: 3,
  maxLostAttempts: 10,
  maxAttempts: 25,
};

/** Why an attempt is over. Only `lost` and `failed` count against the request. */
export type Fall = 'lost' | 'failed' | 'gap' | 'moved';

/** The attempts of one request, and what counts against it. */
export class AttemptFaults {
  readonly #rules: AttemptRules;
  #attempt = 1;
  #hasGained = false;
  #fruitless = 0;
  #lost = 0;

  constructor(rules: AttemptRules = ATTEMPT_RULES) {
    this.#rules = rules;
  }

  /** Number of the present attempt, from 1 on. */
  get attempt(): number {
    return this.#attempt;
  }

  /** Tokens were accepted in the present attempt. */
  get hasGained(): boolean {
    return this.#hasGained;
  }

  /** Attempts in a row that ended with their engine and brought no token. */
  get fruitless(): number {
    return this.#fruitless;
  }

  /** Attempts that ended with their engine. */
  get lost(): number {
    return this.#lost;
  }

  /**
   * Engines were lost with it, so often without a token that one more would be the last: it may be what kills
   * them. Suspects are tried one after another, so that none is blamed for a loss that another caused. It is
   * none once it has gained a token.
   */
  get isSuspect(): boolean {
    return !this.#hasGained && this.#fruitless >= Math.max(1, this.#rules.maxFruitlessAttempts - 1);
  }

  /** A token was accepted. */
  gain(): void {
    this.#hasGained = true;
  }

  /**
   * The present attempt is given up.
   * @returns 'again': the next attempt is to be made; 'poisoned': this was the last one
   */
  fall(why: Fall): 'again' | 'poisoned' {
    if (this.#hasGained) this.#fruitless = 0;
    if (why === 'lost' || why === 'failed') {
      this.#lost++;
      if (!this.#hasGained) this.#fruitless++;
    }
    this.#hasGained = false;
    this.#attempt++;
    const { maxFruitlessAttempts, maxLostAttempts, maxAttempts } = this.#rules;
    const isPoisoned =
      this.#fruitless >= maxFruitlessAttempts || this.#lost >= maxLostAttempts || this.#attempt > maxAttempts;
    return isPoisoned ? 'poisoned' : 'again';
  }
}
