import { createHash } from 'node:crypto';
import type { Admission, Admit, AnswerCost, AnswerTally } from '../../../../callbacks/infer/answer-tally.js';
import type { Caller } from '../access/api-keys.js';
import { ApiError } from '../errors.js';
import { CountedAdmission } from './admission.js';
import {
  type Amounts,
  amountOf,
  DAY_MS,
  type KeyLimits,
  LIMITS,
  type LimitName,
  type LimitState,
  windowAt,
} from './key-limits.js';
import { type Draw, KeyQuota, type Shortage } from './key-quota.js';
import { added, type KeyUsage, NO_USAGE } from './key-usage.js';
import { OwnQuotaRecords, type QuotaRecords } from './quota-records.js';
import { readShared, type SharedQuota, sharedText } from './shared-quota.js';

/** Attempts to write a record that others change meanwhile: with each one some server has made progress. */
const TRIES = 16;
/** Milliseconds for which a limit that was used up is taken as such, without another look: others give back what they do not need. */
const SHORT_MS = 1_000;
const NO_LIMITS: KeyLimits = {};

/** A key, as this server knows it. */
interface Known {
  name: string;
  /** Of its record. */
  recordKey: string;
  quota: KeyQuota;
  limits: KeyLimits;
  /** What its requests have taken here since the server was started, and how many were refused. */
  total: KeyUsage;
  refused: number;
  /** Done when its record is no longer being written. */
  turn: Promise<unknown>;
  /** The shortage that was found last; null: there is none. */
  short: (Shortage & { untilMs: number }) | null;
}

/** A key's usage and limits, as reported. */
export interface KeyReport {
  name: string;
  limits: KeyLimits;
  /** Least of what is left, of requests and of tokens; null: there is no such limit. */
  requests: LimitState | null;
  tokens: LimitState | null;
  /** Today, in UTC, of all servers that share the limits. */
  today: KeyUsage;
  /** At this server, since its start. */
  total: KeyUsage;
  refused: number;
}

/**
 * The limits of API keys: which requests are admitted, what they took, and what is reported to other servers
 * that share the limits.
 *
 *   admit: enough granted? -> let in, at once
 *          no -> the key's record, by compare-and-set -> granted a slice, or 429
 *   flush, again and again: what was used, and what is spare, into the records
 */
export class Quotas {
  readonly #records: QuotaRecords;
  readonly #keys = new Map<string, Known>();

  /** @param records default: of this server alone */
  constructor(records: QuotaRecords = new OwnQuotaRecords()) {
    this.#records = records;
  }

  #known({ name, limits = NO_LIMITS }: Pick<Caller, 'name' | 'limits'>): Known {
    let known = this.#keys.get(name);
    if (known === undefined) {
      known = {
        name,
        recordKey: createHash('sha256').update(name).digest('base64url').slice(0, 32),
        quota: new KeyQuota(),
        limits,
        total: { ...NO_USAGE },
        refused: 0,
        turn: Promise.resolve(),
        short: null,
      };
      this.#keys.set(name, known);
    }
    known.limits = limits;
    return known;
  }

  /** Asks for a caller; undefined: it has no key, and nothing is counted. */
  admitOf(caller: Caller): Admit | undefined {
    return caller.name === '' ? undefined : (cost, tally) => this.admit(caller, cost, tally);
  }

  /**
   * Lets a request in, with the most that it can take, or refuses it. @param tally also receives its answers
   * @throws ApiError 429; 503 where the records cannot be reached
   */
  async admit(caller: Caller, cost: AnswerCost, tally: AnswerTally | undefined): Promise<Admission> {
    const known = this.#known(caller);
    const { quota, limits } = known;
    const amounts: Amounts = { requests: 1, tokens: cost.promptTokens + cost.outputTokens };
    try {
      const never = quota.tooLarge(amounts, limits);
      if (never !== null) throw neverAllowed(known.name, never, limits[never]!, amountOf(never, amounts));
      while (quota.lacks(amounts, limits, this.#records.nowMs())) await this.#refill(known, amounts);
    } catch (error) {
      known.refused++;
      throw error;
    }
    const taken = quota.take(amounts, limits, this.#records.nowMs());
    return new CountedAdmission(cost, tally, (usage) => {
      const tokens = Math.min(amounts.tokens, usage.promptTokens + usage.completionTokens);
      quota.settle(taken, { requests: usage.requests, tokens });
      quota.count(usage);
      known.total = added(known.total, usage);
    });
  }

  /** Draws what lacks, one request of a key after another. @throws ApiError */
  #refill(known: Known, amounts: Amounts): Promise<void> {
    return this.#inTurn(known, async () => {
      const { quota, limits, short } = known;
      const nowMs = this.#records.nowMs();
      // An earlier request may have drawn enough for both.
      if (!quota.lacks(amounts, limits, nowMs)) return;
      if (short !== null && isStill(short, amounts, nowMs))
        throw limitReached(known.name, { ...short, wanted: amountOf(short.name, amounts) });
      const { slice } = this.#records;
      const found = await this.#change(known, (before) =>
        quota.draw(before, amounts, limits, slice, this.#records.nowMs()),
      );
      if ('after' in found) quota.accept(found);
      else {
        known.short = { ...found, untilMs: nowMs + SHORT_MS };
        throw limitReached(known.name, found);
      }
    });
  }

  #inTurn<T>(known: Known, run: () => Promise<T>): Promise<T> {
    const done = known.turn.then(run);
    known.turn = done.catch(() => {});
    return done;
  }

  /** Writes a record, again after each concurrent change. @throws ApiError 503 */
  async #change(
    { recordKey, quota }: Known,
    next: (before: SharedQuota) => Draw | Shortage,
    onConflict: (draw: Draw) => void = () => {},
  ): Promise<Draw | Shortage> {
    try {
      for (let tried = 0; tried < TRIES; tried++) {
        const { text, revision } = await this.#records.get(recordKey);
        const before = readShared(text);
        quota.look(before);
        const draw = next(before);
        if (!('after' in draw)) return draw;
        if (await this.#records.put(recordKey, sharedText(draw.after), revision)) return draw;
        onConflict(draw);
      }
    } catch (error) {
      throw limitsUnreachable(error);
    }
    throw limitsUnreachable(new Error(`others have changed the record of a key ${TRIES} times meanwhile`));
  }

  /**
   * Writes what was used here to the records, and gives back what is spare. To be called regularly; never
   * rejects.
   * @param givesAllBack also what may be wanted in the next moment: the server ends
   */
  async flush(givesAllBack = false): Promise<void> {
    for (const known of this.#keys.values()) {
      const isSpare = known.quota.hasNews(known.limits, this.#records.nowMs());
      if (isSpare || givesAllBack)
        await this.#inTurn(known, () => this.#tell(known, givesAllBack)).catch(() => {});
    }
  }

  async #tell(known: Known, givesAllBack: boolean): Promise<void> {
    const { quota, limits } = known;
    const givesBack = givesAllBack || !quota.isBusy;
    const found = await this.#change(
      known,
      (before) => quota.spare(before, limits, givesBack, this.#records.nowMs()),
      (draw) => quota.keep(draw),
    );
    if ('after' in found) quota.gaveBack(found);
  }

  /** How far a key's limits are used: of requests, and of tokens; null: there is no such limit. */
  stateOf(caller: Pick<Caller, 'name' | 'limits'>): Pick<KeyReport, 'requests' | 'tokens'> {
    const { quota, limits } = this.#known(caller);
    const nowMs = this.#records.nowMs();
    return {
      requests: quota.stateOf('requests', limits, nowMs),
      tokens: quota.stateOf('tokens', limits, nowMs),
    };
  }

  /** What keys have taken. @throws ApiError 503 where the records cannot be reached */
  async reports(callers: readonly Caller[]): Promise<KeyReport[]> {
    const reports: KeyReport[] = [];
    for (const caller of callers) {
      const known = this.#known(caller);
      const { day, usage } = await this.#told(known);
      const today = Math.floor(this.#records.nowMs() / DAY_MS);
      reports.push({
        name: known.name,
        limits: known.limits,
        ...this.stateOf(caller),
        today: added(day >= today ? usage : NO_USAGE, known.quota.untold),
        total: known.total,
        refused: known.refused,
      });
    }
    return reports;
  }

  async #told({ recordKey, quota }: Known): Promise<SharedQuota> {
    try {
      const shared = readShared((await this.#records.get(recordKey)).text);
      quota.look(shared);
      return shared;
    } catch (error) {
      throw limitsUnreachable(error);
    }
  }

  /** What each key's requests have taken here since the server was started. */
  totals(): readonly Pick<KeyReport, 'name' | 'total' | 'refused'>[] {
    return [...this.#keys.values()];
  }
}

/** The limit that was used up is so still, as far as anybody knows. */
function isStill({ name, window, remaining, untilMs }: Known['short'] & {}, amounts: Amounts, nowMs: number) {
  return nowMs < untilMs && windowAt(name, nowMs) <= window && amountOf(name, amounts) > remaining;
}

/** Code of the errors of limits of keys, as OpenAI's clients know it. */
const RATE_LIMITED = 'rate_limit_exceeded';

/** Error for a key whose limit is used up for now. */
function limitReached(key: string, { name, limit, wanted, remaining, resetMs }: Shortage): ApiError {
  const { unit, words } = LIMITS[name];
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  const message = `Rate limit reached for the API key '${key}' on ${words}: the limit is ${limit}, ${remaining} are left, and this request needs ${wanted}. Please try again in ${seconds} s.`;
  return new ApiError(429, message, {
    type: unit,
    code: RATE_LIMITED,
    headers: { 'retry-after': String(seconds) },
  });
}

/** Error for a request that is more than its key may ever have within a window: it is in vain to come again. */
function neverAllowed(key: string, name: LimitName, limit: number, wanted: number): ApiError {
  const { unit, words } = LIMITS[name];
  const how = unit === 'tokens' ? ' Ask for fewer tokens (max_tokens), or shorten the prompt.' : '';
  const message = `Request too large for the API key '${key}' on ${words}: the limit is ${limit}, and this request needs ${wanted}.${how}`;
  return new ApiError(429, message, {
    type: unit,
    code: RATE_LIMITED,
    // OpenAI's clients read it, and those of Anthropic.
    headers: { 'x-should-retry': 'false' },
  });
}

/** Error for limits that cannot be looked at. */
function limitsUnreachable(cause: unknown): ApiError {
  const message = 'The limits of API keys cannot be reached at present; try again later.';
  return new ApiError(503, message, { code: 'limits_unavailable', headers: { 'retry-after': '1' }, cause });
}
