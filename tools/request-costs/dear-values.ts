import { DEFAULT_MAX_BODY_BYTES } from '../../src/server/web/bodies/read-json.js';

/** A value of JSON as text, since what is expensive is often what no serialiser writes. */
export type JsonText = string;

/** Room for the rest of the body besides a value that fills it. */
const REST_OF_BODY = 64 * 1024;
export const LONGEST = DEFAULT_MAX_BODY_BYTES - REST_OF_BODY;

/** An item `count` times, separated by commas. */
function repeated(count: number, item: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => item(index)).join();
}

export const list = (count: number, item: (index: number) => string) => `[${repeated(count, item)}]`;
export const object = (count: number, entry: (index: number) => string) => `{${repeated(count, entry)}}`;
export const text = (unit: string, length: number) => `"${unit.repeat(Math.floor(length / unit.length))}"`;

/** Texts as long as a body holds, in ways to write one that are expensive to read. */
export const longTexts: readonly JsonText[] = [
  text('a', LONGEST),
  text('\\u00e9', LONGEST),
  text('\u{1f9a2}', LONGEST / 2),
];

/** UTF-16 units of the longest text that is tokenized on its own. */
const MAX_TOKENIZED = 2 ** 18;

/**
 * Texts whose words are expensive to cut into tokens: one word of a letter that merges with itself again and
 * again; one of Chinese characters, of which each is three bytes and most are no token; and digits, each of
 * which is a word.
 */
export const longWords: readonly JsonText[] = [
  text('a', MAX_TOKENIZED),
  `"${Array.from({ length: MAX_TOKENIZED }, (_, index) => String.fromCharCode(0x4e00 + ((index * 7919) % 20_000))).join('')}"`,
  text('1234567890', MAX_TOKENIZED),
];

/** Lists of as many values as a body holds, as long as are taken, and objects of which no two are alike. */
export const manyValues: readonly JsonText[] = [
  list(122, () => list(4090, () => '1')),
  list(60, (outer) => object(4090, (inner) => `"k${outer}_${inner}":[]`)),
  list(4000, (outer) => list(60, (inner) => `{"a${outer}":${inner}}`)),
];

/** Values as deep as is taken. */
const deepValues: readonly JsonText[] = [
  `${'['.repeat(190)}${']'.repeat(190)}`,
  list(1200, () => `${'{"a":'.repeat(190)}1${'}'.repeat(190)}`),
];

/** Values for fields that take any JSON. */
export const anyJson: readonly JsonText[] = [longTexts[1]!, ...manyValues, ...deepValues];
export const anyObject: readonly JsonText[] = anyJson.map((value) => `{"a":${value}}`);
