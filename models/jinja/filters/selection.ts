import { type Args, NO_ARGS } from '../calls.js';
import { JinjaError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { eachOf } from '../values/iteration.js';
import { isTrue } from '../values/types.js';
import { Lazy, type Value } from '../values/value.js';
import { attributeReader, type Read } from './attribute-path.js';
import { FILTERS, type Filter, TESTS } from './registry.js';

const wrong = (message: string) => new JinjaError('FilterArgumentError', message);

/** Values of a lazy list, none where the value is false. */
function lazily(value: Value, run: Rendering, each: (item: Value) => Value | undefined): Lazy {
  function* made(): Generator<Value, void> {
    if (!isTrue(value)) return;
    for (const item of eachOf(value, run)) {
      run.spend(1);
      const result = each(item);
      if (result !== undefined) yield result;
    }
  }
  return new Lazy(made());
}

/** Arguments after the first ones. */
const rest = ({ values, named }: Args, from: number): Args =>
  values.length <= from && named === null ? NO_ARGS : { values: values.slice(from), named };

const map: Filter = (run, value, args) => {
  const change =
    args.values.length === 0 && args.named?.has('attribute')
      ? mapAttribute(args.named)
      : mapFilter(run, args);
  return lazily(value, run, change);
};

function mapAttribute(named: ReadonlyMap<string, Value>): Read {
  for (const name of named.keys()) {
    if (name !== 'attribute' && name !== 'default') throw wrong(`Unexpected keyword argument '${name}'`);
  }
  return attributeReader(named.get('attribute')!, named.get('default') ?? null);
}

function mapFilter(run: Rendering, args: Args): Read {
  const [name] = args.values;
  if (name === undefined) throw wrong('map requires a filter argument');
  const filter = FILTERS.get(String(name));
  if (filter === undefined) throw new JinjaError('TemplateRuntimeError', `No filter named '${name}'`);
  const others = rest(args, 1);
  return (item) => filter(run, item, others);
}

/** select, reject, selectattr and rejectattr. */
const selecting =
  (isSelect: boolean, byAttribute: boolean): Filter =>
  (run, value, args) => {
    const offset = byAttribute ? 1 : 0;
    let holds: ((item: Value) => boolean) | null = null;
    // Arguments are read with the first value: an empty list needs none.
    return lazily(value, run, (item) => {
      holds ??= condition(run, args, offset);
      return holds(item) === isSelect ? item : undefined;
    });
  };

function condition(run: Rendering, args: Args, offset: number): (item: Value) => boolean {
  if (args.values.length < offset) throw wrong('Missing parameter for attribute name');
  const read: Read = offset === 0 ? (item) => item : attributeReader(args.values[0]!);
  const name = args.values[offset];
  if (name === undefined) return (item) => isTrue(read(item));
  const test = TESTS.get(String(name));
  if (test === undefined) throw new JinjaError('TemplateRuntimeError', `No test named '${name}'`);
  const others = rest(args, offset + 1);
  return (item) => test(run, read(item), others);
}

export const SELECTION_FILTERS: Readonly<Record<string, Filter>> = {
  map,
  reject: selecting(false, false),
  rejectattr: selecting(false, true),
  select: selecting(true, false),
  selectattr: selecting(true, true),
};
