import { type Args, Builtin } from '../calls.js';
import type { Rendering } from '../rendering.js';
import { charactersOf, isFlat } from '../text/code-points.js';
import { STR_METHODS } from '../text/str-methods.js';
import { DICT_METHODS, DICT_REFUSED, LIST_METHODS, LIST_REFUSED } from './collection-methods.js';
import { Dict } from './dict.js';
import { FLOAT_METHODS, INT_METHODS, numberAttribute } from './number-methods.js';
import { asInt } from './numbers.js';
import { typeNameOf } from './types.js';
import { Undefined } from './undefined.js';
import { Float, PyObject, Range, Tuple, type Value } from './value.js';

export type Method<T extends Value> = (self: T, run: Rendering, args: Args) => Value;
/** Methods of a type, by name. */
export type Methods<T extends Value> = ReadonlyMap<string, Method<T>>;

const NONE: Methods<never> = new Map();
const NO_NAMES: ReadonlySet<string> = new Set();

/** Methods of a value's type. */
export function methodsOf(value: Value): Methods<never> {
  switch (typeof value) {
    case 'string':
      return STR_METHODS as Methods<never>;
    case 'number':
    case 'bigint':
    case 'boolean':
      return INT_METHODS as Methods<never>;
  }
  if (value instanceof Dict) return DICT_METHODS as Methods<never>;
  if (Array.isArray(value) || value instanceof Tuple || value instanceof Range)
    return LIST_METHODS as Methods<never>;
  return value instanceof Float ? (FLOAT_METHODS as Methods<never>) : NONE;
}

/** Methods that would change a value, which no template may. */
function refusedOf(value: Value): ReadonlySet<string> {
  if (value instanceof Dict) return DICT_REFUSED;
  return Array.isArray(value) ? LIST_REFUSED : NO_NAMES;
}

/** Jinja2's value.name: an attribute, else an element of this key, else Undefined. */
export function getAttribute(value: Value, name: string): Value {
  const attribute = ownAttribute(value, name);
  if (attribute !== undefined) return attribute;
  const element = elementOf(value, name);
  return element === undefined ? new Undefined({ of: value, name }) : element;
}

/** Jinja2's value[key]: an element, else an attribute of this name, else Undefined. */
export function getItem(value: Value, key: Value): Value {
  const found = elementOf(value, key);
  if (found !== undefined) return found;
  const attribute = typeof key === 'string' ? ownAttribute(value, key) : undefined;
  return attribute === undefined ? new Undefined({ of: value, name: key }) : attribute;
}

/** True for the names of a dict's attributes, which come before a key of the same name. */
export const isDictAttribute = (name: string) =>
  DICT_METHODS.has(name) || DICT_REFUSED.has(name) || INTERNAL.has(name);

/** An attribute, without a look at elements; undefined: there is none of this name. */
export function ownAttribute(value: Value, name: string): Value | undefined {
  if (value instanceof Undefined) {
    if (isDunder(name)) return undefined;
    throw value.error;
  }
  const method = methodsOf(value).get(name);
  if (method !== undefined) {
    return new Builtin(name, (running, args) => method(value as never, running, args));
  }
  if (refusedOf(value).has(name) || INTERNAL.has(name)) return unsafe(value, name);
  return value instanceof PyObject ? value.attribute(name) : numberAttribute(value, name);
}

const isDunder = (name: string) => name.startsWith('__') && name.endsWith('__');

/** Attributes of every object of Python, which the sandbox hides. */
const INTERNAL = new Set(
  (
    'class delattr dir doc eq format ge getattribute gt hash init init_subclass le lt ne new reduce ' +
    'reduce_ex repr setattr sizeof str subclasshook'
  )
    .split(' ')
    .map((name) => `__${name}__`),
);

function unsafe(value: Value, name: string): Undefined {
  const hint = `access to attribute '${name}' of '${typeNameOf(value)}' object is unsafe.`;
  return new Undefined({ of: value, name, hint, kind: 'SecurityError' });
}

/** An element; undefined: there is none. */
function elementOf(value: Value, key: Value): Value | undefined {
  if (value instanceof Dict) return dictElement(value, key);
  if (value instanceof Undefined) throw value.error;
  const index = asInt(key);
  if (index === null) return undefined;
  if (Array.isArray(value)) return value.at(Number(index));
  if (value instanceof Tuple) return value.items.at(Number(index));
  if (typeof value === 'string') return characterAt(value, Number(index));
  if (!(value instanceof Range)) return undefined;
  const at = Number(index) < 0 ? Number(index) + value.length : Number(index);
  return at >= 0 && at < value.length ? value.start + at * value.step : undefined;
}

function dictElement(dict: Dict, key: Value): Value | undefined {
  if (typeof key === 'string') return dict.getText(key);
  // A list is no key: there is no such element.
  return Array.isArray(key) || key instanceof Dict ? undefined : dict.get(key);
}

function characterAt(text: string, index: number): string | undefined {
  return isFlat(text) ? text.at(index) : charactersOf(text).at(index);
}
