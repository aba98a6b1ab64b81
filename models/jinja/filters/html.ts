import { bind } from '../calls.js';
import { JinjaError, typeError, valueError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { splitSpace } from '../text/split.js';
import { Dict } from '../values/dict.js';
import { isIterable, listOf } from '../values/iteration.js';
import { textOf } from '../values/repr.js';
import { isTrue, typeNameOf } from '../values/types.js';
import { Undefined } from '../values/undefined.js';
import type { Value } from '../values/value.js';
import type { Filter } from './registry.js';

/** Entities as markupsafe writes them. */
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  "'": '&#39;',
  '"': '&#34;',
};
/** Entities that striptags reads, as far as they have short names. */
const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\xa0',
};

function escaped(text: string, run: Rendering): string {
  run.make(text.length);
  return text.replace(/[&<>'"]/g, (character) => ENTITIES[character]!);
}

/** escape and its kin. The result is a plain text: it is not remembered that it was escaped. */
const escapeHtml: Filter = (run, value, args) => {
  bind('escape', [], args);
  return escaped(textOf(value, run), run);
};

const striptags: Filter = (run, value, args) => {
  bind('striptags', [], args);
  const text = textOf(value, run);
  run.read(text.length);
  const plain = withoutTags(withoutTags(text, '<!--', '-->'), '<', '>');
  return splitSpace(plain, -1, false)
    .join(' ')
    .replace(
      /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(\w+));/g,
      (whole, decimal, hex, name: string | undefined) => {
        if (name !== undefined) return NAMED[name] ?? whole;
        const code = decimal === undefined ? Number.parseInt(hex as string, 16) : Number(decimal);
        return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
      },
    );
};

/** A text without its parts from one mark to the next other one. */
function withoutTags(text: string, open: string, close: string): string {
  let result = '';
  let at = 0;
  while (true) {
    const start = text.indexOf(open, at);
    const end = start < 0 ? -1 : text.indexOf(close, start);
    if (end < 0) return result + text.slice(at);
    result += text.slice(at, start);
    at = end + close.length;
  }
}

/** A text without halves of characters, which no URL can hold. */
const wellFormed = (text: string) => text.replace(/\p{Cs}/gu, '\ufffd');

/** A text for a URL; in a query / is written too, and + for a space. */
function quoted(value: Value, isQuery: boolean, run: Rendering): string {
  const text = textOf(value, run);
  run.make(text.length);
  const whole = encodeURIComponent(wellFormed(text)).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return isQuery ? whole.replaceAll('%20', '+') : whole.replaceAll('%2F', '/');
}

const urlencode: Filter = (run, value, args) => {
  bind('urlencode', [], args);
  if (typeof value === 'string' || !isIterable(value)) return quoted(value, false, run);
  const pairs = value instanceof Dict ? value.items() : listOf(value, run).map((pair) => pairOf(pair, run));
  return pairs.map(([key, item]) => `${quoted(key, true, run)}=${quoted(item, true, run)}`).join('&');
};

function pairOf(value: Value, run: Rendering): [Value, Value] {
  const items = listOf(value, run);
  if (items.length !== 2) throw valueError('urlencode needs pairs');
  return [items[0]!, items[1]!];
}

const xmlattr: Filter = (run, value, args) => {
  const [autospace] = bind('xmlattr', [['autospace', true]], args);
  if (!(value instanceof Dict)) throw typeError(`the filter xmlattr needs a dict, not ${typeNameOf(value)}`);
  const attributes = value.items().flatMap(([key, item]) => {
    if (item === null || item instanceof Undefined) return [];
    const name = textOf(key, run);
    if (/[\s/>=]/.test(name))
      throw new JinjaError('ValueError', `Invalid character in attribute name: '${name}'`);
    return [`${escaped(name, run)}="${escaped(textOf(item, run), run)}"`];
  });
  const text = attributes.join(' ');
  return isTrue(autospace!) && text !== '' ? ` ${text}` : text;
};

export const HTML_FILTERS: Readonly<Record<string, Filter>> = {
  e: escapeHtml,
  escape: escapeHtml,
  forceescape: escapeHtml,
  striptags,
  urlencode,
  xmlattr,
};
