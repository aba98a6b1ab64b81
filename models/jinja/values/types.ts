import { PyObject, type Value } from './value.js';

/** Name of a value's type in Python's messages. */
export function typeNameOf(value: Value): string {
  switch (typeof value) {
    case 'string':
      return 'str';
    case 'boolean':
      return 'bool';
    case 'number':
    case 'bigint':
      return 'int';
  }
  if (value === null) return 'NoneType';
  return value instanceof PyObject ? value.typeName : 'list';
}

/** What bool() says. */
export function isTrue(value: Value): boolean {
  if (typeof value !== 'object') return Boolean(value);
  if (value === null) return false;
  return value instanceof PyObject ? value.truth : value.length > 0;
}
