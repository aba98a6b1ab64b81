import { floatText } from '../values/float-text.js';

export interface FloatStyle {
  /** e, E, f, F, g, G or n. */
  type: string;
  precision: number;
  /** Keeps the point, and zeros at the end of g. */
  alternate: boolean;
}

/** A float that is not negative, in C's style. */
export function floatBody(number: number, { type, precision, alternate }: FloatStyle): string {
  const isUpper = type !== type.toLowerCase();
  const body = Number.isFinite(number)
    ? finiteBody(number, type.toLowerCase(), precision, alternate)
    : floatText(number);
  return isUpper ? body.toUpperCase() : body;
}

function finiteBody(number: number, type: string, precision: number, alternate: boolean): string {
  if (type === 'f') return withPoint(fixed(number, precision), alternate);
  if (type === 'e') return exponential(number, precision, alternate);
  // %g: the shorter of both, with a number of significant digits.
  const digits = Math.max(1, precision);
  const { exponent } = significant(number, digits);
  if (exponent < -4 || exponent >= digits) {
    const body = exponential(number, digits - 1, alternate);
    return alternate ? body : body.replace(/(\.\d*?)0+e/, '$1e').replace('.e', 'e');
  }
  const body = fixed(number, digits - 1 - exponent);
  if (alternate) return withPoint(body, true);
  return body.includes('.') ? body.replace(/0+$/, '').replace(/\.$/, '') : body;
}

/** Most digits that are computed: a float's own end before. */
const MAX_DIGITS = 1100;

/** A float times a power of ten, rounded to a whole number: halves go to the even one, of the float's exact value. */
function scaled(number: number, power: number): bigint {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, number);
  const high = bits.getUint32(0);
  const raw = (high >>> 20) & 0x7ff;
  const fraction = (BigInt(high & 0xfffff) << 32n) | BigInt(bits.getUint32(4));
  const mantissa = raw === 0 ? fraction : fraction | (1n << 52n);
  const exponent = (raw === 0 ? 1 : raw) - 1075;
  let above = mantissa;
  let below = 1n;
  if (exponent >= 0) above <<= BigInt(exponent);
  else below <<= BigInt(-exponent);
  if (power >= 0) above *= 10n ** BigInt(power);
  else below *= 10n ** BigInt(-power);
  const whole = above / below;
  const twice = (above % below) * 2n;
  return twice > below || (twice === below && whole % 2n === 1n) ? whole + 1n : whole;
}

/** A number of significant digits, and the power of ten of the first. */
function significant(number: number, count: number): { digits: string; exponent: number } {
  const within = Math.min(MAX_DIGITS, count);
  if (number === 0) return { digits: '0'.repeat(within), exponent: 0 };
  const exponent = Number(number.toExponential().split('e')[1]);
  const digits = String(scaled(number, within - 1 - exponent));
  // 9.96 becomes 10.0.
  if (digits.length > within) return { digits: digits.slice(0, -1), exponent: exponent + 1 };
  return { digits, exponent };
}

function exponential(number: number, precision: number, alternate: boolean): string {
  const { digits, exponent } = significant(number, precision + 1);
  const fraction = digits.slice(1).padEnd(precision, '0');
  const mantissa = withPoint(fraction === '' ? digits[0]! : `${digits[0]}.${fraction}`, alternate);
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${power}`;
}

const withPoint = (text: string, wanted: boolean) => (wanted && !text.includes('.') ? `${text}.` : text);

/** Digits with a number of places after the point. */
function fixed(number: number, places: number): string {
  const within = Math.min(MAX_DIGITS, places);
  const digits = String(scaled(number, within)).padStart(within + 1, '0');
  if (places === 0) return digits;
  const point = digits.length - within;
  return `${digits.slice(0, point)}.${digits.slice(point).padEnd(places, '0')}`;
}

/** A float rounded to places after the point, or before it where they are negative: Python's round(). */
export function roundedTo(number: number, places: number): number {
  if (!Number.isFinite(number) || places > 323) return number;
  if (places < -308) return 0 * number;
  const size = Number(`${scaled(Math.abs(number), places)}e${-places}`);
  return number < 0 || Object.is(number, -0) ? -size : size;
}

/** A float without a type: as repr where no precision is given, else as g, but with a digit after the point. */
export function shortBody(number: number, precision: number | null): string {
  if (precision === null || !Number.isFinite(number)) return floatText(number);
  const digits = Math.max(1, precision);
  const { exponent } = significant(number, digits);
  if (exponent < -4 || exponent >= digits - 1) {
    return exponent < -4 || exponent >= digits
      ? finiteBody(number, 'g', digits, false)
      : exponential(number, digits - 1, false)
          .replace(/(\.\d*?)0+e/, '$1e')
          .replace('.e', 'e');
  }
  const body = finiteBody(number, 'g', digits, false);
  return body.includes('.') ? body : `${body}.0`;
}
