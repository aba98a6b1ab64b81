import { type Args, Callable } from '../calls.js';
import { typeError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { Dict } from '../values/dict.js';
import { Undefined } from '../values/undefined.js';
import { Tuple, type Value } from '../values/value.js';

export interface MacroShape {
  /** null: the body of a call block. */
  name: string | null;
  parameters: readonly string[];
  usesCaller: boolean;
  usesKwargs: boolean;
  usesVarargs: boolean;
}

/** A macro, or the body of a call block: a function that returns text. */
export class Macro extends Callable {
  override readonly typeName = 'Macro';
  readonly #shape: MacroShape;
  readonly #body: (run: Rendering, values: readonly (Value | undefined)[]) => Value;

  /** @param body takes a value for each parameter (undefined: its default), then caller, kwargs and varargs where they are used */
  constructor(shape: MacroShape, body: (run: Rendering, values: readonly (Value | undefined)[]) => Value) {
    super();
    this.#shape = shape;
    this.#body = body;
  }

  override call(run: Rendering, { values, named }: Args): Value {
    const { name, parameters, usesCaller, usesKwargs, usesVarargs } = this.#shape;
    const rest = new Map(named);
    const given: (Value | undefined)[] = parameters.map((parameter, i) => {
      if (i < values.length) return values[i]!;
      const value = rest.get(parameter);
      rest.delete(parameter);
      return value;
    });
    if (usesCaller && !parameters.includes('caller')) {
      given.push(rest.get('caller') ?? new Undefined({ hint: 'No caller defined' }));
      rest.delete('caller');
    }
    if (usesKwargs) given.push(Dict.of(rest));
    else if (rest.size > 0) throw this.#unexpected([...rest.keys()]);
    if (usesVarargs) given.push(new Tuple(values.slice(parameters.length)));
    else if (values.length > parameters.length) {
      throw typeError(`macro '${name}' takes not more than ${parameters.length} argument(s)`);
    }
    run.enter();
    const result = this.#body(run, given);
    run.leave();
    return result;
  }

  #unexpected(names: readonly string[]): Error {
    const { name } = this.#shape;
    if (names.includes('caller')) {
      return typeError(
        `macro '${name}' was invoked with two values for the special caller argument. This is most likely a bug.`,
      );
    }
    return typeError(`macro '${name}' takes no keyword argument '${names[0]}'`);
  }

  override attribute(name: string): Value | undefined {
    const { parameters, usesCaller, usesKwargs, usesVarargs } = this.#shape;
    switch (name) {
      case 'name':
        return this.#shape.name;
      case 'arguments':
        return new Tuple([...parameters]);
      case 'caller':
        return usesCaller;
      case 'catch_kwargs':
        return usesKwargs;
      case 'catch_varargs':
        return usesVarargs;
    }
    return undefined;
  }

  override repr(): string {
    return `<Macro ${this.#shape.name === null ? 'anonymous' : `'${this.#shape.name}'`}>`;
  }
}
