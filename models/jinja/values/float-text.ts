/** Digits of a float, the shortest that give it back, and its power of ten: 0.00012 is digits '12', exponent -4. */
function shortestDigits(number: number): { digits: string; exponent: number } {
  const [mantissa, exponent] = Math.abs(number).toExponential().split('e') as [string, string];
  return { digits: mantissa.replace('.', ''), exponent: Number(exponent) };
}

/** Python's repr of a float: 1.0, 0.0001, 1e-05, 1e+16, inf. */
export function floatText(number: number): string {
  if (Number.isNaN(number)) return 'nan';
  if (!Number.isFinite(number)) return number < 0 ? '-inf' : 'inf';
  const sign = number < 0 || Object.is(number, -0) ? '-' : '';
  const { digits, exponent } = shortestDigits(number);
  if (exponent < -4 || exponent >= 16) return sign + scientific(digits, exponent);
  return sign + plain(digits, exponent);
}

/** Digits with an exponent of at least two digits. */
function scientific(digits: string, exponent: number): string {
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return `${digits[0]}${fraction}e${exponent < 0 ? '-' : '+'}${power}`;
}

function plain(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${whole}.${digits.slice(exponent + 1) || '0'}`;
}
