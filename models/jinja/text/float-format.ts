import { floatText, shortestDigits } from '../values/float-text.js';

export interface FloatStyle {
  /** e, E, f, F, g, G or n. */
  type: string;
  precision: number;
  /** Keeps the point, and zeros at the end of g. */
  alternate: boolean;
}

/** Most digits that JavaScript gives behind the point; a float's own end long before. */
const MAX_DIGITS = 100;

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
  const exponent = number === 0 ? 0 : Number(exact(number, digits - 1).split('e')[1]);
  if (exponent < -4 || exponent >= digits) {
    const body = exponential(number, digits - 1, alternate);
    return alternate ? body : body.replace(/(\.\d*?)0+e/, '$1e').replace('.e', 'e');
  }
  const body = fixed(number, digits - 1 - exponent);
  if (alternate) return withPoint(body, true);
  return body.includes('.') ? body.replace(/0+$/, '').replace(/\.$/, '') : body;
}

const exact = (number: number, digits: number) => number.toExponential(Math.min(MAX_DIGITS, digits));

function exponential(number: number, precision: number, alternate: boolean): string {
  const [mantissa, exponent] = exact(number, precision).split('e') as [string, string];
  const power = Number(exponent);
  const padded =
    precision > MAX_DIGITS ? mantissa.padEnd(mantissa.length + precision - MAX_DIGITS, '0') : mantissa;
  const digits = String(Math.abs(power)).padStart(2, '0');
  return `${withPoint(padded, alternate)}e${power < 0 ? '-' : '+'}${digits}`;
}

const withPoint = (text: string, wanted: boolean) => (wanted && !text.includes('.') ? `${text}.` : text);

/** Digits with a number of places behind the point. */
function fixed(number: number, places: number): string {
  const within = Math.min(MAX_DIGITS, places);
  const text = number < 1e21 ? number.toFixed(within) : largeFixed(number, within);
  if (places <= MAX_DIGITS) return text;
  return text.padEnd(text.length + places - MAX_DIGITS, '0');
}

function largeFixed(number: number, places: number): string {
  const whole = String(BigInt(number));
  return places === 0 ? whole : `${whole}.${'0'.repeat(places)}`;
}

/** A float without a type: as repr where no precision is given, else as g, but with a digit behind the point. */
export function shortBody(number: number, precision: number | null): string {
  if (precision === null || !Number.isFinite(number)) return floatText(number);
  const digits = Math.max(1, precision);
  const { exponent } = shortestDigits(number);
  const body = finiteBody(number, 'g', digits, false);
  if (body.includes('e') || body.includes('.')) return body;
  return exponent + 1 >= digits && digits > 0 ? exponential(number, digits - 1, false) : `${body}.0`;
}
