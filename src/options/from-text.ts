import type { Option } from './table.js';

/** What determines how a text is read: the kind of the values, and their unit. */
type Read = Pick<Option, 'values'> & { flag: Pick<Option['flag'], 'unit'> };

const SIZE = /^(\d+\.?\d*|\.\d+)\s*([kmgt])(i?)b$/i;

/** Converts text to the option's type. Text that does not fit stays text, which the check refuses. */
export function fromText({ values: { kind }, flag: { unit } }: Read, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const text = value.trim();
  if (kind === 'number' && /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  if (kind === 'number' && unit === 'bytes') return bytesOf(text) ?? text;
  if (kind === 'switch' && /^(true|1|yes|on)$/i.test(text)) return true;
  if (kind === 'switch' && /^(false|0|no|off)$/i.test(text)) return false;
  return text;
}

/** Bytes of a size such as 1.5GB (1,500,000,000) or 512 MiB; null: it is not a size. */
function bytesOf(text: string): number | null {
  const [, number, prefix, binary] = SIZE.exec(text) ?? [];
  if (number === undefined) return null;
  const power = 1 + 'kmgt'.indexOf(prefix!.toLowerCase());
  return Math.round(Number(number) * (binary === '' ? 1000 : 1024) ** power);
}
