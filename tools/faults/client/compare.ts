import type { Json } from './fold.js';

/** Characters that are shown of a value. */
const MAX_SHOWN = 120;

/** Where an answer differs from the expected one, bit for bit, in a sentence; null: nowhere. */
export function difference(found: Json, expected: Json, path = 'the answer'): string | null {
  if (found === expected) return null;
  const [inFound, inExpected] = [entriesOf(found), entriesOf(expected)];
  if (inFound === null || inExpected === null || Array.isArray(found) !== Array.isArray(expected))
    return `${path} is ${shown(found)} in place of ${shown(expected)}`;
  for (const name of new Set([...inFound.keys(), ...inExpected.keys()])) {
    const inner = `${path}.${name}`;
    if (!inFound.has(name)) return `${inner} is missing; it is ${shown(inExpected.get(name)!)}`;
    if (!inExpected.has(name)) return `${inner} is ${shown(inFound.get(name)!)}, where nothing is expected`;
    const found = difference(inFound.get(name)!, inExpected.get(name)!, inner);
    if (found !== null) return found;
  }
  return null;
}

/** Where what came of a broken stream is no beginning of the expected answer, in a sentence; null: it is one. */
export function differenceOfBeginning(found: Json, expected: Json, path = 'the beginning'): string | null {
  if (found === expected || found === null) return null;
  if (typeof found === 'string' && typeof expected === 'string')
    return expected.startsWith(found) ? null : difference(found, expected, path);
  const [inFound, inExpected] = [entriesOf(found), entriesOf(expected)];
  if (inFound === null || inExpected === null) return difference(found, expected, path);
  for (const [name, value] of inFound) {
    const inner = `${path}.${name}`;
    if (!inExpected.has(name)) return `${inner} is ${shown(value)}, where nothing is expected`;
    const found = differenceOfBeginning(value, inExpected.get(name)!, inner);
    if (found !== null) return found;
  }
  return null;
}

/** Parts of an object or a list by their names; items that have an index have it for a name. */
function entriesOf(value: Json): Map<string, Json> | null {
  if (typeof value !== 'object' || value === null) return null;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  return new Map(value.map((item, position) => [String(indexOf(item) ?? position), item]));
}

const indexOf = (item: Json): Json | undefined =>
  typeof item === 'object' && item !== null && !Array.isArray(item) ? item.index : undefined;

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}... (${text.length} characters)`;
}
