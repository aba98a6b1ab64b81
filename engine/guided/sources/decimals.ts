/** A number as a fraction of a power of ten: `numerator` / 10 ** `places`. */
export interface Decimal {
  readonly numerator: bigint;
  readonly places: number;
}

/** The number exactly as its shortest decimal notation has it: 0.01 is 1 / 10 ** 2. */
export function decimalOf(value: number): Decimal {
  const [whole = '', fraction = ''] = plainDigits(value).split('.');
  const kept = fraction.replace(/0+$/, '');
  return { numerator: BigInt(whole + kept), places: kept.length };
}

/** Digits of the number without an exponent. */
export function plainDigits(value: number): string {
  const [digits = '', exponent] = String(value).split('e');
  if (exponent === undefined) return digits;
  const [whole = '', fraction = ''] = digits.split('.');
  const places = Number(exponent);
  if (places > 0) return whole + fraction.padEnd(places, '0');
  const sign = whole.startsWith('-') ? '-' : '';
  return `${sign}0.${'0'.repeat(-places - 1)}${whole.slice(sign.length)}${fraction}`;
}

/** True if the number is a multiple of the other in decimals: 0.07 is one of 0.01, although their quotient as doubles is not whole. */
export function isMultiple(value: number, of: number): boolean {
  const [a, b] = [decimalOf(value), decimalOf(of)];
  const places = Math.max(a.places, b.places);
  return scaled(a, places) % scaled(b, places) === 0n;
}

/** The least number that is a multiple of both; null where a double does not hold it exactly. */
export function leastCommonMultiple(first: number, second: number): number | null {
  const [a, b] = [decimalOf(first), decimalOf(second)];
  const places = Math.max(a.places, b.places);
  const [x, y] = [scaled(a, places), scaled(b, places)];
  const multiple = (x / greatestCommonDivisor(x, y)) * y;
  if (multiple > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  return Number(`${multiple}e-${places}`);
}

function scaled({ numerator, places }: Decimal, to: number): bigint {
  return numerator * 10n ** BigInt(to - places);
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}
