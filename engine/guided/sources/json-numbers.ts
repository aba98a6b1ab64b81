import { alt, EMPTY, type Expr, GuideError, oneOf, rule, seq, text } from '../grammar.js';
import { spend } from '../reading-work.js';
import { type Decimal, decimalOf, plainDigits } from './decimals.js';
import { MAX_DIGITS } from './json-text.js';

/** Greatest numerator of a multipleOf: each remainder and digit takes a rule. */
const MAX_MULTIPLE = 1000;

export interface NumberBounds {
  minimum?: number | undefined;
  exclusiveMinimum?: number | undefined;
  maximum?: number | undefined;
  exclusiveMaximum?: number | undefined;
  /** One for which `whyNoMultiple` has no objection. */
  multipleOf?: number | undefined;
}

/** Why multiples of the number cannot be followed; null: they can. */
export function whyNoMultiple(multipleOf: number): string | null {
  const { numerator, places } = decimalOf(multipleOf);
  if (numerator <= MAX_MULTIPLE && places < MAX_DIGITS) return null;
  return `multipleOf is ${multipleOf}; whole numbers from 1 to ${MAX_MULTIPLE}, and as many times 0.1, 0.01 and so on, are supported`;
}

/** Steps that a place in a number costs; each place is a rule. */
const PLACE_WORK = 100;
/** Greater than any number that can be written. */
const BEYOND = 10 ** MAX_DIGITS;

interface Bound {
  /** Exactly MAX_DIGITS digits before the point, and as many after it. */
  whole: string;
  fraction: string;
  isExclusive: boolean;
}

/** Adds a rule and returns a reference to it. */
export type AddRule = (name: string, expr: Expr) => Expr;

/** Least number of decimals of a number within bounds; more if the bounds themselves have more. */
const MIN_FRACTION = 6;

/**
 * Grammar of numbers within bounds in plain notation, without an exponent, with at most MAX_DIGITS digits before the
 * point. `prefix` names the rules. @throws GuideError for bounds that no such number can be compared with
 */
export function boundedNumber(
  bounds: NumberBounds,
  isInteger: boolean,
  prefix: string,
  addRule: AddRule,
): Expr {
  const low = lower(bounds);
  const high = upper(bounds);
  const multiple = bounds.multipleOf === undefined ? null : decimalOf(bounds.multipleOf);
  const isWhole = isInteger || multiple?.places === 0;
  const ways: Expr[] = [];
  // Numbers from 0 up; negative numbers are the same with a sign and mirrored bounds.
  const positive = new DecimalRules(low === null || low.sign < 0 ? null : low, high, {
    isInteger: isWhole,
    multiple,
    prefix: `${prefix}-p`,
  });
  if (high === null || high.sign >= 0) ways.push(positive.expr(addRule));
  const atLeast = high !== null && high.sign < 0 ? high : null;
  const atMost = low !== null && low.sign < 0 ? low : null;
  const negative = new DecimalRules(atLeast, atMost, {
    isInteger: isWhole,
    multiple,
    prefix: `${prefix}-n`,
    withoutZero: true,
  });
  if (low === null || low.sign < 0) ways.push(seq(text('-'), negative.expr(addRule)));
  return alt(...ways);
}

type Limit = Bound & { sign: number };

function lower({ minimum, exclusiveMinimum }: NumberBounds): Limit | null {
  const isExclusive =
    exclusiveMinimum !== undefined && (minimum === undefined || exclusiveMinimum >= minimum);
  const value = isExclusive ? exclusiveMinimum : minimum;
  // No number has as many digits as this bound, so it excludes none.
  return value === undefined || value <= -BEYOND ? null : limitOf(value, isExclusive);
}

function upper({ maximum, exclusiveMaximum }: NumberBounds): Limit | null {
  const isExclusive =
    exclusiveMaximum !== undefined && (maximum === undefined || exclusiveMaximum <= maximum);
  const value = isExclusive ? exclusiveMaximum : maximum;
  return value === undefined || value >= BEYOND ? null : limitOf(value, isExclusive);
}

function limitOf(value: number, isExclusive: boolean): Limit {
  const [whole = '', fraction = ''] = plainDigits(Math.abs(value)).split('.');
  if (whole.length > MAX_DIGITS || fraction.length > MAX_DIGITS) {
    throw new GuideError(
      `${value} is refused as the bound of a number: it has more than ${MAX_DIGITS} digits before or after the point.`,
    );
  }
  return {
    sign: Math.sign(value),
    whole: whole.padStart(MAX_DIGITS, '0'),
    fraction: fraction.padEnd(MAX_DIGITS, '0'),
    isExclusive,
  };
}

interface Place {
  /** Number of digits still to come before the point; negative: the place is after it. */
  left: number;
  /** True if all digits so far equal those of the bound. */
  onLow: boolean;
  onHigh: boolean;
  remainder: number;
  isZero: boolean;
  /** Total number of digits before the point, if some may follow after it. */
  length: number;
}

interface DecimalOptions {
  isInteger: boolean;
  /** What the numbers are multiples of; null: of nothing. */
  multiple: Decimal | null;
  prefix: string;
  withoutZero?: boolean;
}

/**
 * Rules for numbers from `low` (null: 0) to `high` (null: no bound), digit by digit: a rule for each place that
 * matters.
 */
class DecimalRules {
  readonly #low: Bound | null;
  readonly #high: Bound | null;
  readonly #options: DecimalOptions;
  readonly #maxFraction: number;
  /** The numerator of what numbers are multiples of. */
  readonly #numerator: number;
  readonly #named = new Set<string>();

  constructor(low: Bound | null, high: Bound | null, options: DecimalOptions) {
    this.#low = low;
    this.#high = high;
    this.#options = options;
    const longest = Math.max(...[low, high].map((bound) => bound?.fraction.replace(/0+$/, '').length ?? 0));
    const most = options.multiple?.places ?? Math.min(MAX_DIGITS, Math.max(MIN_FRACTION, longest + 1));
    this.#maxFraction = options.isInteger ? 0 : most;
    this.#numerator = Number(options.multiple?.numerator ?? 1n);
  }

  expr(addRule: AddRule): Expr {
    const ways: Expr[] = [];
    for (let length = 1; length <= MAX_DIGITS; length++) {
      const lead = MAX_DIGITS - length;
      const onLow = this.#low !== null && /^0*$/.test(this.#low.whole.slice(0, lead));
      const onHigh = this.#high !== null && /^0*$/.test(this.#high.whole.slice(0, lead));
      // A number with fewer digits than the lower bound is too small.
      if (this.#low !== null && !onLow) continue;
      const place = { left: length, onLow, onHigh, remainder: 0, isZero: true, length };
      ways.push(this.#digits(place, length === 1 ? 0 : 1, addRule));
    }
    return alt(...ways);
  }

  /** Expression for the next digit, at least `least`, and all that follows. */
  #digits(place: Place, least: number, addRule: AddRule): Expr {
    const { onLow, onHigh } = place;
    const from = Math.max(least, onLow ? digitAt(this.#low!, place.left) : 0);
    const to = onHigh ? digitAt(this.#high!, place.left) : 9;
    const ways: Expr[] = [];
    const groups = new Map<string, { digits: string; next: Place }>();
    for (let digit = from; digit <= to; digit++) {
      const next = {
        left: place.left - 1,
        onLow: onLow && digit === digitAt(this.#low!, place.left),
        onHigh: onHigh && digit === digitAt(this.#high!, place.left),
        remainder: (place.remainder * 10 + digit) % this.#numerator,
        isZero: place.isZero && digit === 0,
        length: place.length,
      };
      const key = this.#nameOf(next);
      const group = groups.get(key) ?? { digits: '', next };
      group.digits += digit;
      groups.set(key, group);
    }
    for (const { digits, next } of groups.values())
      ways.push(seq(oneOf(digits), this.#behind(next, addRule)));
    return alt(...ways);
  }

  /** Rule for everything that may follow the digits so far. */
  #behind(place: Place, addRule: AddRule): Expr {
    const name = this.#nameOf(place);
    if (this.#named.has(name)) return rule(name);
    this.#named.add(name);
    spend(PLACE_WORK);
    const ways: Expr[] = [];
    if (place.left > 0) ways.push(this.#digits(place, 0, addRule));
    else {
      if (this.#mayEnd(place)) ways.push(EMPTY);
      // More digits in all than a double keeps could round to a bound that is excluded.
      if (place.left > -Math.min(this.#maxFraction, MAX_DIGITS - place.length)) {
        const digit = this.#digits(place, 0, addRule);
        ways.push(place.left === 0 ? seq(text('.'), digit) : digit);
      }
    }
    return addRule(name, alt(...ways));
  }

  #mayEnd(place: Place): boolean {
    const { onLow, onHigh, remainder, isZero, left } = place;
    if (isZero && this.#options.withoutZero) return false;
    // Digits that are not written are zeros.
    const unwritten = 10 ** ((this.#options.multiple?.places ?? 0) + Math.min(0, left));
    if ((remainder * (unwritten % this.#numerator)) % this.#numerator !== 0) return false;
    const behind = (bound: Bound) => /[1-9]/.test(bound.fraction.slice(-left));
    if (onLow && (behind(this.#low!) || this.#low!.isExclusive)) return false;
    return !(onHigh && !behind(this.#high!) && this.#high!.isExclusive);
  }

  #nameOf({ left, onLow, onHigh, remainder, isZero, length }: Place): string {
    const marks = `${onLow ? 'l' : ''}${onHigh ? 'h' : ''}${isZero ? 'z' : ''}`;
    const digits = this.#options.isInteger ? '' : `of${length}`;
    return `${this.#options.prefix}-${left}${digits}${marks}-${remainder}`;
  }
}

/** The bound's digit at the place where `left` digits before the point are still to come, that one included. */
function digitAt({ whole, fraction }: Bound, left: number): number {
  return Number(left > 0 ? whole[MAX_DIGITS - left] : fraction[-left]);
}
