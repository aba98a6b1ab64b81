import { JinjaError, typeError, valueError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { charactersOf, isFlat } from '../text/code-points.js';
import { asInt } from './numbers.js';
import { typeNameOf } from './types.js';
import { Undefined } from './undefined.js';
import { Range, Tuple, type Value } from './value.js';

export interface SliceBounds {
  start: Value;
  stop: Value;
  step: Value;
}

/** Python's value[start:stop:step]. */
export function slice(value: Value, bounds: SliceBounds, run: Rendering): Value {
  if (typeof value === 'string') return sliceText(value, bounds, run);
  if (Array.isArray(value)) return pick(value, bounds, run);
  if (value instanceof Tuple) return new Tuple(pick(value.items, bounds, run));
  if (value instanceof Range) return sliceRange(value, bounds);
  if (value instanceof Undefined) throw value.error;
  throw typeError(`'${typeNameOf(value)}' object is not subscriptable`);
}

function sliceText(text: string, bounds: SliceBounds, run: Rendering): string {
  run.read(text.length);
  const characters = isFlat(text) ? null : charactersOf(text);
  const length = characters?.length ?? text.length;
  const { start, stop, step } = resolved(bounds, length);
  if (step === 1) {
    if (start >= stop) return '';
    return characters === null ? text.slice(start, stop) : characters.slice(start, stop).join('');
  }
  let result = '';
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) result += characters?.[i] ?? text[i];
  return result;
}

function pick(items: Value[], bounds: SliceBounds, run: Rendering): Value[] {
  run.make(items.length);
  const { start, stop, step } = resolved(bounds, items.length);
  if (step === 1) return items.slice(start, Math.max(start, stop));
  const picked: Value[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) picked.push(items[i]!);
  return picked;
}

function sliceRange(range: Range, bounds: SliceBounds): Range {
  const { start, stop, step } = resolved(bounds, range.length);
  const at = (index: number) => range.start + index * range.step;
  return new Range(at(start), at(stop), range.step * step);
}

/** Bounds as indices within a length. */
function resolved(bounds: SliceBounds, length: number): { start: number; stop: number; step: number } {
  const step = bounds.step === null ? 1 : slicePart(bounds.step);
  if (step === 0) throw valueError('slice step cannot be zero');
  const [lowest, highest] = step > 0 ? [0, length] : [-1, length - 1];
  const within = (bound: Value, fallback: number) => {
    if (bound === null) return fallback;
    const index = slicePart(bound);
    return Math.min(highest, Math.max(lowest, index < 0 ? index + length : index));
  };
  return {
    start: within(bounds.start, step > 0 ? lowest : highest),
    stop: within(bounds.stop, step > 0 ? highest : lowest),
    step,
  };
}

function slicePart(value: Value): number {
  const int = asInt(value);
  if (int !== null) return Number(int);
  throw new JinjaError('TypeError', 'slice indices must be integers or None or have an __index__ method');
}
