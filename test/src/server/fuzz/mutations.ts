import * as fc from 'fast-check';
import { nested } from './hostile-values.js';
import { changedAt, type Json, nameOf, type Path, pathsOf, RawJson, valueAt } from './json-text.js';

/** A body in which one thing was changed. */
export interface Mutation {
  body: Json;
  /** The change in words, for a message. */
  what: string;
  /** Place of the change, as refusals name it. */
  name: string;
}

const raw = (text: string) => new RawJson(text);

/** Values to put in place of another: of another type, or more of it than anyone needs. */
const strange: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 0, -1, 1.5, '', [], {}, [null], [[]], [{}], { '': '' }),
  fc.constantFrom(
    ...['1e999', '-1e999', '1e308', '5e-324', '-0', '1'.repeat(400), '9007199254740993', '2147483648'].map(
      raw,
    ),
  ),
  fc.constantFrom<Json>(
    '\0',
    'a\0b',
    '\ud800',
    '\udfff\ud800',
    '\uffff',
    '\u202e',
    '<|im_end|>',
    '{{ x }}',
    '%s%n',
  ),
  fc.constantFrom<Json>({ ['__proto__']: { a: 1 } }, { toString: 1, valueOf: null }, { length: -1 }),
  fc.constantFrom(raw('{"__proto__":{"polluted":1}}'), raw('{"a":1,"a":2}')),
  fc.integer({ min: 1, max: 190 }).map((levels) => raw(nested(levels))),
  fc.integer({ min: 1, max: 190 }).map((levels) => raw(nested(levels, '{"a":', '1', '}'))),
  fc.constantFrom(300, 20_000).map((levels) => raw(nested(levels, '[', '', ']'))),
  fc.integer({ min: 1, max: 18 }).map((power) => raw(`"${'y'.repeat(2 ** power)}"`)),
  fc.integer({ min: 1, max: 13 }).map((power) => raw(`[${'1,'.repeat(2 ** power)}1]`)),
  fc.integer({ min: 1, max: 13 }).map((power) => raw(`[${'"a",'.repeat(2 ** power)}""]`)),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.double(),
  fc.json({ maxDepth: 3 }).map(raw),
);

const isObject = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RawJson);

/** A single change somewhere in a body. */
export function mutationOf(body: Json): fc.Arbitrary<Mutation> {
  const everywhere = pathsOf(body).filter((path) => path.length > 0);
  const objects = pathsOf(body).filter((path) => isObject(valueAt(body, path)));
  const lists = everywhere.filter((path) => Array.isArray(valueAt(body, path)));
  const kinds: { weight: number; arbitrary: fc.Arbitrary<Mutation> }[] = [
    {
      weight: 6,
      arbitrary: fc
        .tuple(fc.constantFrom(...everywhere), strange)
        .map(([path, value]) => put(body, path, value)),
    },
    { weight: 1, arbitrary: fc.constantFrom(...everywhere).map((path) => leftOut(body, path)) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom(...objects), fc.string({ unit: 'binary', maxLength: 12 }), strange)
        .filter(([path, key]) => !(key in (valueAt(body, path) as object)))
        .map(([path, key, value]) => put(body, [...path, key], value)),
    },
  ];
  if (lists.length > 0) {
    const arbitrary = fc
      .tuple(fc.constantFrom(...lists), fc.constantFrom(2, 100, 5000))
      .map(([path, times]) => repeated(body, path, times));
    kinds.push({ weight: 1, arbitrary });
  }
  return fc.oneof(...kinds);
}

function shown(value: Json): string {
  return (value instanceof RawJson ? value.text : JSON.stringify(value)).slice(0, 100);
}

function put(body: Json, path: Path, value: Json): Mutation {
  const name = nameOf(path);
  return { body: changedAt(body, path, () => value), what: `${name} = ${shown(value)}`, name };
}

function leftOut(body: Json, path: Path): Mutation {
  const name = nameOf(path);
  return { body: changedAt(body, path, () => undefined), what: `without ${name}`, name };
}

function repeated(body: Json, path: Path, times: number): Mutation {
  const name = nameOf(path);
  const many = (list: Json) => Array.from({ length: times }, () => list as readonly Json[]).flat();
  return { body: changedAt(body, path, many), what: `${name} ${times} times over`, name };
}

/** Bytes with some of them changed, left out, doubled or put in. */
export function bytesNear(bytes: Uint8Array): fc.Arbitrary<Uint8Array> {
  const place = fc.nat({ max: Math.max(0, bytes.length - 1) });
  const edit = fc.tuple(
    place,
    fc.constantFrom('set', 'insert', 'remove', 'double', 'cut'),
    fc.oneof(
      fc.nat({ max: 255 }),
      fc.constantFrom(...Buffer.from('"\\{}[],:0-9e.\r\n \0\xff\xc0\xed', 'latin1')),
    ),
    fc.integer({ min: 1, max: 12 }),
  );
  return fc.array(edit, { minLength: 1, maxLength: 6 }).map((edits) => {
    let list = [...bytes];
    for (const [index, kind, byte, count] of edits) {
      if (kind === 'set') list[index] = byte;
      if (kind === 'insert') list.splice(index, 0, ...Array<number>(count).fill(byte));
      if (kind === 'remove') list.splice(index, count);
      if (kind === 'double') list.splice(index, 0, ...list.slice(index, index + 10 * count));
      if (kind === 'cut') list = list.slice(0, Math.max(index, 1));
    }
    return Uint8Array.from(list, (byte) => byte ?? 0);
  });
}
