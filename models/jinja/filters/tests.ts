import { Callable, positional } from '../calls.js';
import { typeError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { isAllOf } from '../text/case.js';
import { compare, contains, equals } from '../values/compare.js';
import { Dict } from '../values/dict.js';
import { isIterable, sizeOf } from '../values/iteration.js';
import { asNumber } from '../values/numbers.js';
import { binary } from '../values/operators.js';
import { textOf } from '../values/repr.js';
import { Undefined } from '../values/undefined.js';
import { DictView, Float, Tuple, type Value } from '../values/value.js';
import { FILTERS, TESTS, type Test } from './registry.js';

/** A test without arguments. */
const plain =
  (holds: (value: Value, run: Rendering) => boolean): Test =>
  (run, value, args) => {
    positional('a test', args, 0);
    return holds(value, run);
  };

/** A test with one argument. */
const paired =
  (holds: (value: Value, other: Value, run: Rendering) => boolean): Test =>
  (run, value, args) => {
    const [other] =
      args.named === null ? positional('a test', args, 1) : [...args.values, ...args.named.values()];
    if (other === undefined) throw typeError('the test needs one argument');
    return holds(value, other, run);
  };

const rest = (value: Value, divisor: Value, run: Rendering) => asNumber(binary('%', value, divisor, run));

const isInt = (value: Value) => typeof value === 'number' || typeof value === 'bigint';
const isNumber = (value: Value) => isInt(value) || typeof value === 'boolean' || value instanceof Float;

/** Python's `is`: the same object; texts and numbers are where they are equal. */
const isSame = (a: Value, b: Value): boolean =>
  a === b || (a instanceof Tuple && b instanceof Tuple && a.items.length + b.items.length === 0);

const hasLengthAndItems = (value: Value): boolean => sizeOf(value) !== null && !(value instanceof DictView);

const eq = paired(equals);
const ne = paired((a, b, run) => !equals(a, b, run));
const lt = paired((a, b, run) => compare(a, b, run, '<') < 0);
const le = paired((a, b, run) => compare(a, b, run, '<=') <= 0);
const gt = paired((a, b, run) => compare(a, b, run, '>') > 0);
const ge = paired((a, b, run) => compare(a, b, run, '>=') >= 0);

export const BUILT_IN_TESTS: Readonly<Record<string, Test>> = {
  '!=': ne,
  '<': lt,
  '<=': le,
  '==': eq,
  '>': gt,
  '>=': ge,
  boolean: plain((value) => typeof value === 'boolean'),
  callable: plain((value) => value instanceof Callable || value instanceof Undefined),
  defined: plain((value) => !(value instanceof Undefined)),
  divisibleby: paired((value, divisor, run) => rest(value, divisor, run) === 0),
  eq,
  equalto: eq,
  escaped: plain(() => false),
  even: plain((value, run) => rest(value, 2, run) === 0),
  false: plain((value) => value === false),
  filter: plain((value) => typeof value === 'string' && FILTERS.has(value)),
  float: plain((value) => value instanceof Float),
  ge,
  greaterthan: gt,
  gt,
  in: paired((value, container, run) => contains(container, value, run)),
  integer: plain(isInt),
  iterable: plain(isIterable),
  le,
  lessthan: lt,
  lower: plain((value, run) => isAllOf(textOf(value, run), 'lower')),
  lt,
  mapping: plain((value) => value instanceof Dict),
  ne,
  none: plain((value) => value === null),
  number: plain(isNumber),
  odd: plain((value, run) => rest(value, 2, run) === 1),
  sameas: paired(isSame),
  sequence: plain(hasLengthAndItems),
  string: plain((value) => typeof value === 'string'),
  test: plain((value) => typeof value === 'string' && TESTS.has(value)),
  true: plain((value) => value === true),
  undefined: plain((value) => value instanceof Undefined),
  upper: plain((value, run) => isAllOf(textOf(value, run), 'upper')),
};
