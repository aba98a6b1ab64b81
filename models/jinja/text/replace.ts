import type { Rendering } from '../rendering.js';
import { charactersOf } from './code-points.js';

/** Number of places at which a text holds another, without overlaps. */
export function countOf(text: string, part: string): number {
  if (part === '') return charactersOf(text).length + 1;
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count++;
  return count;
}

/** Python's str.replace. @param most how many places at most; negative: all */
export function replaced(text: string, old: string, fresh: string, most: number, run: Rendering): string {
  run.read(text.length);
  const found = countOf(text, old);
  const count = most < 0 ? found : Math.min(most, found);
  if (count === 0) return text;
  run.walk(count);
  run.make(text.length + count * (fresh.length - old.length));
  if (old === '') return between(text, fresh, count);
  if (count === found) return text.split(old).join(fresh);
  const parts: string[] = [];
  let start = 0;
  for (let i = 0; i < count; i++) {
    const at = text.indexOf(old, start);
    parts.push(text.slice(start, at));
    start = at + old.length;
  }
  return parts.join(fresh) + fresh + text.slice(start);
}

/** A text with another before each character, and at its end. */
function between(text: string, fresh: string, count: number): string {
  let result = '';
  let left = count;
  for (const character of charactersOf(text)) result += left-- > 0 ? fresh + character : character;
  return left > 0 ? result + fresh : result;
}
