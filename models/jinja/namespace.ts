import { JinjaError } from './errors.js';
import type { Dict } from './values/dict.js';
import { PyObject, type Value } from './values/value.js';

/** Jinja2's namespace: the one value that a template changes. */
export class Namespace extends PyObject {
  override readonly typeName = 'Namespace';
  readonly #values = new Map<string, Value>();

  constructor(values: Dict) {
    super();
    for (const [name, value] of values.items()) this.set(String(name), value);
  }

  set(name: string, value: Value): void {
    if (name.startsWith('_')) {
      throw new JinjaError(
        'SecurityError',
        `a namespace cannot have an attribute that begins with an underscore, but '${name}' does`,
      );
    }
    this.#values.set(name, value);
  }

  override attribute(name: string): Value | undefined {
    return this.#values.get(name);
  }

  override repr(): string {
    return '<Namespace>';
  }
}
