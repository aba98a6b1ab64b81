import { type Args, Builtin, bind, Callable, positional } from './calls.js';
import { JinjaError, NotAvailableError, typeError, valueError } from './errors.js';
import { Namespace } from './namespace.js';
import type { Rendering } from './rendering.js';
import { strftime } from './strftime.js';
import { dictOf, fromKeys } from './values/collection-methods.js';
import { indexOf } from './values/numbers.js';
import { textOf } from './values/repr.js';
import { PyObject, Range, type Value } from './values/value.js';

/** Most numbers of one range(), as in Jinja2's sandbox. */
const MAX_RANGE = 100_000;

function rangeOf(args: Args): Range {
  const numbers = positional('range', args, 1, 3).map((value) => indexOf(value));
  const [start, stop, step = 1] =
    numbers.length === 1 ? [0, numbers[0]!] : (numbers as [number, number, number?]);
  if (step === 0) throw valueError('range() arg 3 must not be zero');
  const range = new Range(start, stop, step);
  if (range.length <= MAX_RANGE) return range;
  throw new JinjaError(
    'OverflowError',
    `range() of ${range.length} numbers is too big; ${MAX_RANGE} is the limit`,
  );
}

/** The function dict, with its method fromkeys. */
class DictFunction extends Callable {
  override readonly typeName = 'TemplateDict';

  override call(run: Rendering, { values, named }: Args): Value {
    return dictOf(run, values, named);
  }

  override attribute(name: string): Value | undefined {
    if (name !== 'fromkeys') return undefined;
    return new Builtin('fromkeys', (run, args) =>
      fromKeys(run, bind('fromkeys', ['iterable', ['value', null]], args)),
    );
  }
}

/** Jinja2's cycler: gives its values in turn. */
class Cycler extends PyObject {
  override readonly typeName = 'Cycler';
  readonly #items: readonly Value[];
  #at = 0;

  constructor(items: readonly Value[]) {
    super();
    if (items.length === 0) throw new JinjaError('RuntimeError', 'at least one item has to be provided');
    this.#items = items;
  }

  override attribute(name: string): Value | undefined {
    switch (name) {
      case 'current':
        return this.#items[this.#at]!;
      case 'items':
        return [...this.#items];
      case 'pos':
        return this.#at;
      case 'next':
        return new Builtin('next', () => this.#next());
      case 'reset':
        return new Builtin('reset', () => {
          this.#at = 0;
          return null;
        });
    }
    return undefined;
  }

  #next(): Value {
    const value = this.#items[this.#at]!;
    this.#at = (this.#at + 1) % this.#items.length;
    return value;
  }
}

/** Jinja2's joiner: nothing at first, then always its separator. */
class Joiner extends Callable {
  override readonly typeName = 'Joiner';
  readonly #separator: Value;
  #isUsed = false;

  constructor(separator: Value) {
    super();
    this.#separator = separator;
  }

  override call(): Value {
    const isFirst = !this.#isUsed;
    this.#isUsed = true;
    return isFirst ? '' : this.#separator;
  }
}

/** Functions that every template has. @param now the clock of strftime_now */
export function globalsOf(now: () => Date): Map<string, Value> {
  const functions: Record<string, (run: Rendering, args: Args) => Value> = {
    range: (_run, args) => rangeOf(args),
    namespace: (run, { values, named }) => new Namespace(dictOf(run, values, named)),
    cycler: (_run, { values }) => new Cycler(values),
    joiner: (_run, args) => new Joiner(bind('joiner', [['sep', ', ']], args)[0]!),
    lipsum: () => {
      throw new NotAvailableError('the function lipsum is not available: a prompt has no random text');
    },
    raise_exception: (run, args) => {
      throw new JinjaError('TemplateError', textOf(bind('raise_exception', ['message'], args)[0]!, run));
    },
    strftime_now: (run, args) => {
      const [format] = bind('strftime_now', ['format'], args);
      if (typeof format !== 'string') throw typeError('strftime_now() takes a text');
      run.make(format.length);
      return strftime(now(), format);
    },
  };
  const globals = new Map<string, Value>([['dict', new DictFunction()]]);
  for (const [name, implementation] of Object.entries(functions)) {
    globals.set(name, new Builtin(name, implementation));
  }
  return globals;
}
