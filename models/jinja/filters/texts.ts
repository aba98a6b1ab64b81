import { type Args, bind, type Parameter } from '../calls.js';
import { JinjaError, NotAvailableError, typeError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { capitalized } from '../text/case.js';
import { charactersOf, lengthOf } from '../text/code-points.js';
import { padded } from '../text/padding.js';
import { printf } from '../text/printf.js';
import { replaced } from '../text/replace.js';
import { splitFromRight, splitLines } from '../text/split.js';
import { strip } from '../text/strip.js';
import { compare } from '../values/compare.js';
import { Dict } from '../values/dict.js';
import { sizeOf } from '../values/iteration.js';
import { indexOf } from '../values/numbers.js';
import { reprIn, textOf } from '../values/repr.js';
import { isTrue, typeNameOf } from '../values/types.js';
import { Undefined } from '../values/undefined.js';
import { Tuple, type Value } from '../values/value.js';
import type { Filter } from './registry.js';
import { wrapped } from './wrap.js';

/** A filter of the text of a value, without arguments. */
const ofText =
  (name: string, change: (text: string, run: Rendering) => Value): Filter =>
  (run, value, args) => {
    bind(name, [], args);
    const text = textOf(value, run);
    run.read(text.length);
    return change(text, run);
  };

/** A value that has to be a text. */
function onlyText(value: Value, name: string): string {
  if (typeof value === 'string') return value;
  if (value instanceof Undefined) throw value.error;
  const kind = Array.isArray(value) ? 'AttributeError' : 'TypeError';
  throw new JinjaError(kind, `the filter ${name} needs a text, not ${typeNameOf(value)}`);
}

const replace: Filter = (run, value, args) => {
  const [old, fresh, count] = bind('replace', ['old', 'new', ['count', null]], args) as [Value, Value, Value];
  const most = count === null ? -1 : indexOf(count);
  return replaced(textOf(value, run), textOf(old, run), textOf(fresh, run), most, run);
};

const trim: Filter = (run, value, args) => {
  const [characters] = bind('trim', [['chars', null]], args);
  const text = textOf(value, run);
  run.read(text.length);
  if (characters !== null && typeof characters !== 'string') throw typeError('strip arg must be None or str');
  return strip(text, 'both', characters);
};

const INDENT: readonly Parameter[] = [
  ['width', 4],
  ['first', false],
  ['blank', false],
];

const indent: Filter = (run, value, args) => {
  const [width, first, blank] = bind('indent', INDENT, args) as [Value, Value, Value];
  const text = onlyText(value, 'indent');
  const by = typeof width === 'string' ? width : spaces(Math.max(0, indexOf(width)), run);
  const lines = splitLines(`${text}\n`, false);
  run.make(text.length + lines.length * by.length);
  const [head, ...rest] = lines;
  const indented = rest.map((line) => `\n${line !== '' || isTrue(blank) ? by : ''}${line}`);
  return (isTrue(first) ? by : '') + head + indented.join('');
};

function spaces(width: number, run: Rendering): string {
  run.make(width);
  return ' '.repeat(width);
}

const center: Filter = (run, value, args) => {
  const [width] = bind('center', [['width', 80]], args);
  return padded(textOf(value, run), { side: '^', width: indexOf(width!), fill: ' ' }, run);
};

const format: Filter = (run, value, { values, named }: Args) => {
  if (values.length > 0 && named !== null) {
    throw new JinjaError(
      'FilterArgumentError',
      "can't handle positional and keyword arguments at the same time",
    );
  }
  return printf(textOf(value, run), named === null ? new Tuple([...values]) : Dict.of(named), run);
};

const TRUNCATE: readonly Parameter[] = [
  ['length', 255],
  ['killwords', false],
  ['end', '...'],
  ['leeway', null],
];

const truncate: Filter = (run, value, args) => {
  const [most, killsWords, end, given] = bind('truncate', TRUNCATE, args) as [Value, Value, Value, Value];
  const ending = onlyText(end, 'truncate');
  const length = indexOf(most);
  const leeway = given === null ? 5 : indexOf(given);
  const own = lengthOf(ending);
  if (length < own) throw new JinjaError('ValueError', `expected length >= ${own}, got ${length}`);
  if (leeway < 0) throw new JinjaError('ValueError', `expected leeway >= 0, got ${leeway}`);
  const size = sizeOf(value);
  // A short list stays what it is.
  if (size !== null && size <= length + leeway) return value;
  const text = onlyText(value, 'truncate');
  run.read(text.length);
  const cut = charactersOf(text)
    .slice(0, length - own)
    .join('');
  return (isTrue(killsWords) ? cut : splitFromRight(cut, ' ', 1)[0]!) + ending;
};

const WORDWRAP: readonly Parameter[] = [
  ['width', 79],
  ['break_long_words', true],
  ['wrapstring', null],
  ['break_on_hyphens', true],
];

const wordwrap: Filter = (run, value, args) => {
  const [width, breaksWords, between, breaksHyphens] = bind('wordwrap', WORDWRAP, args) as Value[];
  const joint = between === null ? '\n' : onlyText(between!, 'wordwrap');
  const options = {
    width: indexOf(width!),
    breaksLongWords: isTrue(breaksWords!),
    breaksOnHyphens: isTrue(breaksHyphens!),
  };
  const text = onlyText(value, 'wordwrap');
  run.walk(text.length);
  const lines = splitLines(text, false).map((line) => wrapped(line, options).join(joint));
  run.make(lines.reduce((sum, line) => sum + line.length + joint.length, 0));
  return lines.join(joint);
};

/** Beginnings of words for the filter title, which lets only these go before a word. */
const WORD_BEGINNINGS = /([-\s({[<]+)/;

function title(text: string): string {
  return text
    .split(WORD_BEGINNINGS)
    .map((word) => {
      const [first = ''] = word;
      return first.toUpperCase() + word.slice(first.length).toLowerCase();
    })
    .join('');
}

const WORD = /[\p{L}\p{N}_]+/gu;
/** Most characters of a value that pprint writes on one line. */
const PRETTY_WIDTH = 80;

const pprint: Filter = (run, value, args) => {
  bind('pprint', [], args);
  const text = reprIn(withSortedKeys(value, run), run);
  if (typeof value !== 'object' || lengthOf(text) <= PRETTY_WIDTH) return text;
  throw new NotAvailableError('the filter pprint is available for values that fit on one line');
};

function withSortedKeys(value: Value, run: Rendering): Value {
  run.walk(1);
  if (Array.isArray(value)) return value.map((item) => withSortedKeys(item, run));
  if (value instanceof Tuple) return new Tuple(value.items.map((item) => withSortedKeys(item, run)));
  if (!(value instanceof Dict)) return value;
  const pairs = value.items().map(([key, item]): [Value, Value] => [key, withSortedKeys(item, run)]);
  return Dict.of(pairs.sort(([a], [b]) => compare(a, b, run)));
}

export const TEXT_FILTERS: Readonly<Record<string, Filter>> = {
  capitalize: ofText('capitalize', capitalized),
  center,
  format,
  indent,
  lower: ofText('lower', (text) => text.toLowerCase()),
  pprint,
  replace,
  safe: ofText('safe', (text) => text),
  string: ofText('string', (text) => text),
  title: ofText('title', title),
  trim,
  truncate,
  upper: ofText('upper', (text) => text.toUpperCase()),
  wordcount: ofText('wordcount', (text) => text.match(WORD)?.length ?? 0),
  wordwrap,
};
