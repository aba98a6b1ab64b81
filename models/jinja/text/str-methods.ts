import { bind, type Parameter, positional } from '../calls.js';
import { NotAvailableError, typeError, valueError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import type { Method as MethodOf, Methods } from '../values/attributes.js';
import { listOf } from '../values/iteration.js';
import { asInt, indexOf } from '../values/numbers.js';
import { typeNameOf } from '../values/types.js';
import { Tuple, type Value } from '../values/value.js';
import { capitalized, isAllOf, isTitled, swapped, titled } from './case.js';
import {
  isAlphanumeric,
  isDecimal,
  isDigit,
  isIdentifier,
  isLetter,
  isNumeric,
  isPrintable,
  isSpace,
} from './character-classes.js';
import { charactersOf, indexOfUnit, isFlat, lengthOf, unitOffset } from './code-points.js';
import { padded } from './padding.js';
import { countOf, replaced } from './replace.js';
import { splitFromLeft, splitFromRight, splitLines, splitSpace } from './split.js';
import { formatMapped, formatted } from './str-format.js';
import { strip } from './strip.js';

type Method = MethodOf<string>;

/** A method without arguments, of which the text is read once. */
const plain =
  (name: string, compute: (text: string) => Value): Method =>
  (self, run, args) => {
    positional(name, args, 0);
    run.read(self.length);
    return compute(self);
  };

/** True where a text is not empty and all of its characters are of a class. */
const all = (is: (character: string) => boolean) => (text: string) => {
  for (const character of text) if (!is(character)) return false;
  return text !== '';
};

function text(value: Value, what: string): string {
  if (typeof value === 'string') return value;
  throw typeError(`${what} must be str, not ${typeNameOf(value)}`);
}

/** strip, lstrip and rstrip. */
const stripping =
  (name: string, sides: 'both' | 'left' | 'right'): Method =>
  (self, run, args) => {
    const [characters = null] = positional(name, args, 0, 1);
    if (characters !== null && typeof characters !== 'string') {
      throw typeError(`${name} arg must be None or str`);
    }
    run.read(self.length);
    return strip(self, sides, characters);
  };

/** find, index, rfind and rindex. */
const finding =
  (name: string, fromEnd: boolean, mustBe: boolean): Method =>
  (self, run, args) => {
    const [wanted, ...bounds] = positional(name, args, 1, 3);
    const { start, end } = unitBounds(self, bounds);
    run.read(self.length);
    const part = text(wanted!, `${name}() argument 1`);
    const at = start > end ? -1 : findWithin(self, part, start, end, fromEnd);
    if (at < 0 && mustBe) throw valueError('substring not found');
    return isFlat(self) ? at : indexOfUnit(self, at);
  };

function findWithin(whole: string, part: string, start: number, end: number, fromEnd: boolean): number {
  const at = whole.slice(start, end)[fromEnd ? 'lastIndexOf' : 'indexOf'](part);
  return at < 0 ? -1 : at + start;
}

/** Bounds given as indices of characters, as units of the text; a start beyond the end stays there. */
function unitBounds(
  self: string,
  [first = null, last = null]: readonly Value[],
): { start: number; end: number } {
  if (first === null && last === null) return { start: 0, end: self.length };
  const length = lengthOf(self);
  const within = (bound: Value, fallback: number) => {
    if (bound === null) return fallback;
    const index = indexOf(bound, 'slice indices');
    return Math.max(0, index < 0 ? index + length : index);
  };
  const start = within(first, 0);
  const end = Math.min(length, within(last, length));
  return { start: start > length ? length + 1 : unitOffset(self, start), end: unitOffset(self, end) };
}

/** startswith and endswith: of a text, or of one of several. */
const bordering =
  (name: 'startswith' | 'endswith'): Method =>
  (self, run, args) => {
    const [wanted, ...bounds] = positional(name, args, 1, 3);
    const options = wanted instanceof Tuple ? wanted.items : [wanted!];
    const { start, end } = unitBounds(self, bounds);
    run.walk(options.length);
    return options.some((one) => {
      if (typeof one !== 'string') {
        throw typeError(
          `${name} first arg must be str or a tuple of str, not ${typeNameOf(wanted instanceof Tuple ? one : wanted!)}`,
        );
      }
      if (start > end || one.length > end - start) return false;
      return name === 'startswith' ? self.startsWith(one, start) : self.endsWith(one, end);
    });
  };

const SPLIT: readonly Parameter[] = [
  ['sep', null],
  ['maxsplit', -1],
];

const splitting =
  (name: 'split' | 'rsplit'): Method =>
  (self, run, args) => {
    const [separator, most] = bind(name, SPLIT, args);
    run.read(self.length);
    const limit = indexOf(most!);
    if (separator === null) return counted(run, splitSpace(self, limit, name === 'rsplit'));
    const between = text(separator!, 'sep');
    if (between === '') throw valueError('empty separator');
    return counted(run, (name === 'split' ? splitFromLeft : splitFromRight)(self, between, limit));
  };

function counted(run: Rendering, parts: string[]): string[] {
  run.make(parts.length);
  return parts;
}

const partitioning =
  (name: 'partition' | 'rpartition'): Method =>
  (self, run, args) => {
    const separator = text(positional(name, args, 1)[0]!, `${name}() argument`);
    if (separator === '') throw valueError('empty separator');
    run.read(self.length);
    const at = name === 'partition' ? self.indexOf(separator) : self.lastIndexOf(separator);
    if (at < 0) return new Tuple(name === 'partition' ? [self, '', ''] : ['', '', self]);
    return new Tuple([self.slice(0, at), separator, self.slice(at + separator.length)]);
  };

/** ljust, rjust and center. */
const padding =
  (name: string, side: '<' | '>' | '^'): Method =>
  (self, run, args) => {
    const [width, fill = ' '] = positional(name, args, 1, 2);
    const character = text(fill, 'the fill character');
    if (lengthOf(character) !== 1) throw typeError('The fill character must be exactly one character long');
    return padded(self, { side, width: indexOf(width!), fill: character }, run);
  };

const removing =
  (name: 'removeprefix' | 'removesuffix'): Method =>
  (self, _run, args) => {
    const part = text(positional(name, args, 1)[0]!, `${name}() argument`);
    if (name === 'removeprefix') return self.startsWith(part) ? self.slice(part.length) : self;
    return part !== '' && self.endsWith(part) ? self.slice(0, -part.length) : self;
  };

const replacing: Method = (self, run, args) => {
  const [old, fresh, count = -1] = positional('replace', args, 2, 3);
  return replaced(
    self,
    text(old!, 'replace() argument 1'),
    text(fresh!, 'replace() argument 2'),
    indexOf(count),
    run,
  );
};

const counting: Method = (self, run, args) => {
  const [wanted, ...bounds] = positional('count', args, 1, 3);
  const { start, end } = unitBounds(self, bounds);
  run.read(self.length);
  return start > end ? 0 : countOf(self.slice(start, end), text(wanted!, 'count() argument 1'));
};

/** Python's str.join. */
export function joined(separator: string, items: readonly string[], run: Rendering): string {
  let units = Math.max(0, items.length - 1) * separator.length;
  for (const item of items) units += item.length;
  run.walk(items.length);
  run.make(units);
  return items.join(separator);
}

const joining: Method = (self, run, args) => {
  const items = listOf(positional('join', args, 1)[0]!, run);
  for (const [i, item] of items.entries()) {
    if (typeof item !== 'string') {
      throw typeError(`sequence item ${i}: expected str instance, ${typeNameOf(item)} found`);
    }
  }
  return joined(self, items as string[], run);
};

const zeroFilling: Method = (self, run, args) => {
  const width = indexOf(positional('zfill', args, 1)[0]!);
  const sign = /^[+-]/.test(self) ? self[0]! : '';
  const rest = self.slice(sign.length);
  return sign + padded(rest, { side: '>', width: width - sign.length, fill: '0' }, run);
};

const expandingTabs: Method = (self, run, args) => {
  const size = indexOf(bind('expandtabs', [['tabsize', 8]], args)[0]!);
  run.make(self.length + countOf(self, '\t') * Math.max(0, size));
  let column = 0;
  let result = '';
  for (const character of charactersOf(self)) {
    if (character === '\t') {
      const spaces = size > 0 ? size - (column % size) : 0;
      result += ' '.repeat(spaces);
      column += spaces;
    } else {
      result += character;
      column = character === '\n' || character === '\r' ? 0 : column + 1;
    }
  }
  return result;
};

const missing =
  (name: string): Method =>
  () => {
    throw new NotAvailableError(`the method ${name} of str is not available`);
  };

/** Methods of str. */
export const STR_METHODS: Methods<string> = new Map<string, Method>([
  ['capitalize', plain('capitalize', capitalized)],
  ['casefold', plain('casefold', (self) => self.toUpperCase().toLowerCase().replaceAll('ς', 'σ'))],
  ['center', padding('center', '^')],
  ['count', counting],
  ['encode', missing('encode')],
  ['endswith', bordering('endswith')],
  ['expandtabs', expandingTabs],
  ['find', finding('find', false, false)],
  ['format', (self, run, args) => formatted(self, args, run)],
  ['format_map', (self, run, args) => formatMapped(self, positional('format_map', args, 1)[0]!, run)],
  ['index', finding('index', false, true)],
  ['isalnum', plain('isalnum', all(isAlphanumeric))],
  ['isalpha', plain('isalpha', all(isLetter))],
  ['isascii', plain('isascii', (self) => !/[^\0-\x7f]/.test(self))],
  ['isdecimal', plain('isdecimal', all(isDecimal))],
  ['isdigit', plain('isdigit', all(isDigit))],
  ['isidentifier', plain('isidentifier', isIdentifier)],
  ['islower', plain('islower', (self) => isAllOf(self, 'lower'))],
  ['isnumeric', plain('isnumeric', all(isNumeric))],
  ['isprintable', plain('isprintable', (self) => self === '' || all(isPrintable)(self))],
  ['isspace', plain('isspace', all(isSpace))],
  ['istitle', plain('istitle', isTitled)],
  ['isupper', plain('isupper', (self) => isAllOf(self, 'upper'))],
  ['join', joining],
  ['ljust', padding('ljust', '<')],
  ['lower', plain('lower', (self) => self.toLowerCase())],
  ['lstrip', stripping('lstrip', 'left')],
  ['maketrans', missing('maketrans')],
  ['partition', partitioning('partition')],
  ['removeprefix', removing('removeprefix')],
  ['removesuffix', removing('removesuffix')],
  ['replace', replacing],
  ['rfind', finding('rfind', true, false)],
  ['rindex', finding('rindex', true, true)],
  ['rjust', padding('rjust', '>')],
  ['rpartition', partitioning('rpartition')],
  ['rsplit', splitting('rsplit')],
  ['rstrip', stripping('rstrip', 'right')],
  ['split', splitting('split')],
  [
    'splitlines',
    (self, run, args) => {
      const [keepEnds] = bind('splitlines', [['keepends', false]], args);
      run.read(self.length);
      return counted(run, splitLines(self, asInt(keepEnds!) !== 0));
    },
  ],
  ['startswith', bordering('startswith')],
  ['strip', stripping('strip', 'both')],
  ['swapcase', plain('swapcase', swapped)],
  ['title', plain('title', titled)],
  ['translate', missing('translate')],
  ['upper', plain('upper', (self) => self.toUpperCase())],
  ['zfill', zeroFilling],
]);
