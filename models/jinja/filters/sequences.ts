import { bind, type Parameter, positional } from '../calls.js';
import { JinjaError, NotAvailableError, typeError } from '../errors.js';
import { charactersOf } from '../text/code-points.js';
import { joined } from '../text/str-methods.js';
import { getAttribute, ownAttribute } from '../values/attributes.js';
import { compare, equals, sorted } from '../values/compare.js';
import { Dict } from '../values/dict.js';
import { eachOf, isIterable, listOf, sizeOf } from '../values/iteration.js';
import { indexOf } from '../values/numbers.js';
import { binary } from '../values/operators.js';
import { textOf } from '../values/repr.js';
import { isTrue, typeNameOf } from '../values/types.js';
import { Undefined } from '../values/undefined.js';
import { GroupTuple, Lazy, Tuple, type Value } from '../values/value.js';
import { attributeReader, attributesReader, lowered } from './attribute-path.js';
import type { Filter } from './registry.js';

const length: Filter = (_run, value, args) => {
  bind('length', [], args);
  const size = sizeOf(value);
  if (size === null) throw typeError(`object of type '${typeNameOf(value)}' has no len()`);
  return size;
};

const list: Filter = (run, value, args) => {
  bind('list', [], args);
  return listOf(value, run);
};

const join: Filter = (run, value, args) => {
  const [separator, attribute] = bind(
    'join',
    [
      ['d', ''],
      ['attribute', null],
    ],
    args,
  ) as [Value, Value];
  const read = attributeReader(attribute);
  const texts = listOf(value, run).map((item) => textOf(read(item), run));
  return joined(textOf(separator, run), texts, run);
};

const first: Filter = (run, value, args) => {
  bind('first', [], args);
  for (const item of eachOf(value, run)) return item;
  return new Undefined({ hint: 'No first item, sequence was empty.' });
};

const last: Filter = (run, value, args) => {
  bind('last', [], args);
  if (value instanceof Lazy || sizeOf(value) === null) throw notReversible(value);
  const items = listOf(value, run);
  return items.length > 0 ? items.at(-1)! : new Undefined({ hint: 'No last item, sequence was empty.' });
};

const notReversible = (value: Value) => typeError(`'${typeNameOf(value)}' object is not reversible`);

const reverse: Filter = (run, value, args) => {
  bind('reverse', [], args);
  if (typeof value === 'string') {
    run.make(value.length);
    return charactersOf(value).reverse().join('');
  }
  if (!isIterable(value)) throw new JinjaError('FilterArgumentError', 'argument must be iterable');
  const items = listOf(value, run);
  run.make(items.length);
  return new Lazy([...items].reverse().values(), 'list_reverseiterator');
};

const SORT: readonly Parameter[] = [
  ['reverse', false],
  ['case_sensitive', false],
  ['attribute', null],
];

const sort: Filter = (run, value, args) => {
  const [isReversed, isSensitive, attribute] = bind('sort', SORT, args) as [Value, Value, Value];
  const read = attributesReader(attribute, isTrue(isSensitive) ? null : lowered);
  return sorted(listOf(value, run), read, run, isTrue(isReversed));
};

const DICTSORT: readonly Parameter[] = [
  ['case_sensitive', false],
  ['by', 'key'],
  ['reverse', false],
];

const dictsort: Filter = (run, value, args) => {
  const [isSensitive, by, isReversed] = bind('dictsort', DICTSORT, args) as [Value, Value, Value];
  if (by !== 'key' && by !== 'value') {
    throw new JinjaError('FilterArgumentError', 'You can only sort by either "key" or "value"');
  }
  const pairs = pairsOf(value, 'dictsort').map((pair) => new Tuple(pair));
  const keyOf = (pair: Value) => (pair as Tuple).items[by === 'key' ? 0 : 1]!;
  const read = isTrue(isSensitive) ? keyOf : (pair: Value) => lowered(keyOf(pair));
  return sorted(pairs, read, run, isTrue(isReversed));
};

function pairsOf(value: Value, name: string): [Value, Value][] {
  if (value instanceof Dict) return value.items();
  if (value instanceof Undefined) throw value.error;
  throw new JinjaError('AttributeError', `the filter ${name} needs a dict, not ${typeNameOf(value)}`);
}

const items: Filter = (run, value, args) => {
  bind('items', [], args);
  if (value instanceof Undefined) return new Lazy([].values());
  if (!(value instanceof Dict)) throw typeError('Can only get item pairs from a mapping.');
  run.make(value.size);
  const pairs = value.items().map((pair) => new Tuple(pair));
  return new Lazy(pairs.values());
};

const CASED: readonly Parameter[] = [
  ['case_sensitive', false],
  ['attribute', null],
];

const unique: Filter = (run, value, args) => {
  const [isSensitive, attribute] = bind('unique', CASED, args) as [Value, Value];
  const read = attributeReader(attribute);
  function* found(): Generator<Value, void> {
    const seen = new Dict();
    for (const item of eachOf(value, run)) {
      run.walk(1);
      const key = isTrue(isSensitive) ? read(item) : lowered(read(item));
      if (seen.has(key)) continue;
      seen.set(key, true);
      yield item;
    }
  }
  return new Lazy(found());
};

const extreme =
  (name: 'min' | 'max'): Filter =>
  (run, value, args) => {
    const [isSensitive, attribute] = bind(name, CASED, args) as [Value, Value];
    const own = attributeReader(attribute);
    const read = isTrue(isSensitive) ? own : (item: Value) => lowered(own(item));
    let best: { item: Value; key: Value } | null = null;
    for (const item of eachOf(value, run)) {
      run.walk(1);
      const key = read(item);
      const order =
        best === null ? 0 : name === 'min' ? compare(key, best.key, run) : compare(best.key, key, run, '>');
      if (best === null || order < 0) best = { item, key };
    }
    return best === null ? new Undefined({ hint: 'No aggregated item, sequence was empty.' }) : best.item;
  };

const sum: Filter = (run, value, args) => {
  const [attribute, start] = bind(
    'sum',
    [
      ['attribute', null],
      ['start', 0],
    ],
    args,
  ) as [Value, Value];
  if (typeof start === 'string') throw typeError("sum() can't sum strings [use ''.join(seq) instead]");
  const read = attributeReader(attribute);
  let total: Value = start;
  for (const item of eachOf(value, run)) {
    run.walk(1);
    total = binary('+', total, read(item), run);
  }
  return total;
};

const batch: Filter = (run, value, args) => {
  const [count, fill] = bind('batch', ['linecount', ['fill_with', null]], args) as [Value, Value];
  const size = indexOf(count);
  function* batches(): Generator<Value, void> {
    let row: Value[] = [];
    for (const item of eachOf(value, run)) {
      if (row.length === size) {
        yield row;
        row = [];
      }
      row.push(item);
    }
    if (row.length === 0) return;
    if (fill !== null && row.length < size) {
      run.make(size);
      while (row.length < size) row.push(fill);
    }
    yield row;
  }
  return new Lazy(batches());
};

const slice: Filter = (run, value, args) => {
  const [count, fill] = bind('slice', ['slices', ['fill_with', null]], args) as [Value, Value];
  const slices = indexOf(count);
  function* columns(): Generator<Value, void> {
    const all = listOf(value, run);
    if (slices === 0) throw new JinjaError('ZeroDivisionError', 'integer division or modulo by zero');
    const size = Math.floor(all.length / slices);
    const longer = all.length % slices;
    let offset = 0;
    for (let i = 0; i < slices; i++) {
      run.walk(1);
      const start = offset + i * size;
      if (i < longer) offset++;
      const column = all.slice(start, offset + (i + 1) * size);
      if (fill !== null && i >= longer) column.push(fill);
      yield column;
    }
  }
  return new Lazy(columns());
};

const GROUPBY: readonly Parameter[] = ['attribute', ['default', null], ['case_sensitive', false]];

const groupby: Filter = (run, value, args) => {
  const [attribute, fallback, isSensitive] = bind('groupby', GROUPBY, args) as [Value, Value, Value];
  const own = attributeReader(attribute, fallback);
  const read = isTrue(isSensitive) ? own : (item: Value) => lowered(own(item));
  const groups: { key: Value; members: Value[] }[] = [];
  for (const item of sorted(listOf(value, run), read, run)) {
    const key = read(item);
    const group = groups.at(-1);
    if (group !== undefined && equals(group.key, key, run)) group.members.push(item);
    else groups.push({ key, members: [item] });
  }
  return groups.map(({ members }) => new GroupTuple([own(members[0]!), members]));
};

const fallback: Filter = (_run, value, args) => {
  const [other, isForFalse] = bind(
    'default',
    [
      ['default_value', ''],
      ['boolean', false],
    ],
    args,
  ) as [Value, Value];
  return value instanceof Undefined || (isTrue(isForFalse) && !isTrue(value)) ? other : value;
};

const attr: Filter = (_run, value, args) => {
  const [name] = positional('attr', args, 1);
  if (typeof name !== 'string') throw typeError('attribute name must be string');
  if (ownAttribute(value, name) === undefined) return new Undefined({ of: value, name });
  return getAttribute(value, name);
};

const random: Filter = () => {
  throw new NotAvailableError('the filter random is not available: a prompt is the same each time');
};

const urlize: Filter = () => {
  throw new NotAvailableError('the filter urlize is not available: a prompt has no links');
};

export const SEQUENCE_FILTERS: Readonly<Record<string, Filter>> = {
  attr,
  batch,
  count: length,
  d: fallback,
  default: fallback,
  dictsort,
  first,
  groupby,
  items,
  join,
  last,
  length,
  list,
  max: extreme('max'),
  min: extreme('min'),
  random,
  reverse,
  slice,
  sort,
  sum,
  unique,
  urlize,
};
