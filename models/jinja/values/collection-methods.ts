import { bind, positional } from '../calls.js';
import { JinjaError, typeError, valueError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import type { Method, Methods } from './attributes.js';
import { equals } from './compare.js';
import { Dict } from './dict.js';
import { listOf } from './iteration.js';
import { indexOf } from './numbers.js';
import { typeNameOf } from './types.js';
import { DictView, type Range, Tuple, type Value } from './value.js';

/** Methods of list and dict that would change them. */
export const LIST_REFUSED = new Set('append clear pop reverse insert sort extend remove'.split(' '));
export const DICT_REFUSED = new Set('clear pop popitem setdefault update'.split(' '));

type Sequence = Value[] | Tuple | Range;

function itemsIn(sequence: Sequence): readonly Value[] {
  if (Array.isArray(sequence)) return sequence;
  return sequence instanceof Tuple ? sequence.items : sequence.toArray();
}

/** Methods of list, tuple and range; copy is list's alone. */
export const LIST_METHODS: Methods<Sequence> = new Map<string, Method<Sequence>>([
  [
    'count',
    (self, run, args) => {
      const [wanted] = positional('count', args, 1);
      const items = itemsIn(self);
      run.walk(items.length);
      return items.filter((item) => equals(item, wanted!, run)).length;
    },
  ],
  [
    'index',
    (self, run, args) => {
      const [wanted, start = 0, stop = null] = positional('index', args, 1, 3);
      const items = itemsIn(self);
      run.walk(items.length);
      const within = (bound: Value) => {
        const at = indexOf(bound);
        return Math.max(0, at < 0 ? at + items.length : at);
      };
      const end = stop === null ? items.length : Math.min(items.length, within(stop));
      for (let i = within(start); i < end; i++) if (equals(items[i]!, wanted!, run)) return i;
      throw valueError('the value that index() looks for is not in the list');
    },
  ],
  [
    'copy',
    (self, _run, args) => {
      if (!Array.isArray(self)) throw typeError(`'${typeNameOf(self)}' object has no attribute 'copy'`);
      positional('copy', args, 0);
      return self;
    },
  ],
]);

/** Methods of dict. */
export const DICT_METHODS: Methods<Dict> = new Map<string, Method<Dict>>([
  [
    'get',
    (self, _run, args) => {
      const [key, fallback = null] = positional('get', args, 1, 2);
      const value = self.get(key!);
      return value === undefined ? fallback! : value;
    },
  ],
  ['keys', (self, _run, args) => view(self, 'keys', positional('keys', args, 0))],
  ['values', (self, _run, args) => view(self, 'values', positional('values', args, 0))],
  ['items', (self, _run, args) => view(self, 'items', positional('items', args, 0))],
  [
    'copy',
    (self, _run, args) => {
      positional('copy', args, 0);
      return self;
    },
  ],
  ['fromkeys', (_self, run, args) => fromKeys(run, bind('fromkeys', ['iterable', ['value', null]], args))],
]);

function view(dict: Dict, part: DictView['part'], _none: readonly Value[]): DictView {
  return new DictView(dict, part);
}

/** Python's dict.fromkeys. */
export function fromKeys(run: Rendering, [keys, value]: Value[]): Dict {
  return Dict.of(listOf(keys!, run).map((key): [Value, Value] => [key, value!]));
}

/** Python's dict(): of a dict or of pairs, and of names. */
export function dictOf(
  run: Rendering,
  values: readonly Value[],
  named: ReadonlyMap<string, Value> | null,
): Dict {
  if (values.length > 1) throw typeError(`dict expected at most 1 argument, got ${values.length}`);
  const [given] = values;
  const pairs: [Value, Value][] =
    given === undefined ? [] : given instanceof Dict ? given.items() : pairsOf(run, given);
  run.make(pairs.length);
  return Dict.of([...pairs, ...(named ?? [])]);
}

function pairsOf(run: Rendering, value: Value): [Value, Value][] {
  return listOf(value, run).map((pair, i): [Value, Value] => {
    const items = listOf(pair, run);
    if (items.length === 2) return [items[0]!, items[1]!];
    throw new JinjaError(
      'ValueError',
      `dictionary update sequence element #${i} has length ${items.length}; 2 is required`,
    );
  });
}
