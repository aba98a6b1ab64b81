import type { Option } from './table.js';

/** Converts text to the option's type. Text that does not fit stays text, which the check refuses. */
export function fromText(kind: Option['values']['kind'], value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const text = value.trim();
  if (kind === 'number' && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  if (kind === 'switch' && /^(true|1|yes|on)$/i.test(text)) return true;
  if (kind === 'switch' && /^(false|0|no|off)$/i.test(text)) return false;
  return text;
}
