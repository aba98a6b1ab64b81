import type protobuf from 'protobufjs';
import { closestName } from '../../base/did-you-mean.js';
import { shown } from '../../base/option-values.js';
import { meantDataType } from './meant-data-type.js';
import { ModelConfigError } from './model-config-error.js';
import type { FieldPath } from './written-config.js';

/** Elements of one list or map: a model has few inputs, and a step for each model of an ensemble. */
const MOST_ELEMENTS = 4096;

/** An error with the rest of a sentence that begins with the field. */
const problem = (path: FieldPath, rest: string) => new ModelConfigError(rest, { path });

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What JSON or YAML has for a message, as fields of the schema: enums by their names, whole numbers as numbers. @throws ModelConfigError with the field's path */
export function readMessage(type: protobuf.Type, value: unknown, path: FieldPath): Record<string, unknown> {
  if (!isObject(value)) throw problem(path, `is ${shown(value)}; an object is expected`);
  const read: Record<string, unknown> = {};
  const chosen = new Map<string, string>();
  for (const [name, given] of Object.entries(value)) {
    const field = Object.hasOwn(type.fields, name) ? type.fields[name]! : null;
    if (field === null) throw problem([...path, name], unknownField(type, name));
    if (given === undefined || given === null) continue;
    const { partOf } = field;
    if (partOf !== null) {
      const other = chosen.get(partOf.name);
      if (other !== undefined) {
        throw problem([...path, name], `and ${other} exclude each other; one of them is expected`);
      }
      chosen.set(partOf.name, name);
    }
    read[name] = readField(field.resolve(), given, [...path, name]);
  }
  return read;
}

function unknownField(type: protobuf.Type, name: string): string {
  const names = Object.keys(type.fields);
  const meant = closestName(name, names);
  return `is no field here; ${meant === null ? `there are ${names.join(', ')}` : `${meant} may be meant`}`;
}

function readField(field: protobuf.Field, value: unknown, path: FieldPath): unknown {
  if (field.map) {
    if (!isObject(value)) throw problem(path, `is ${shown(value)}; an object is expected`);
    const entries = Object.entries(value);
    if (entries.length > MOST_ELEMENTS) throw tooMany(path, entries.length);
    return Object.fromEntries(entries.map(([key, one]) => [key, readValue(field, one, [...path, key])]));
  }
  if (!field.repeated) return readValue(field, value, path);
  const list = Array.isArray(value) ? value : [value];
  if (list.length > MOST_ELEMENTS) throw tooMany(path, list.length);
  return list.map((one, i) => readValue(field, one, [...path, i]));
}

function tooMany(path: FieldPath, count: number): ModelConfigError {
  return problem(path, `has ${count} elements; at most ${MOST_ELEMENTS} are taken`);
}

function readValue(field: protobuf.Field, value: unknown, path: FieldPath): unknown {
  const { resolvedType, type } = field;
  if (resolvedType !== null && 'fields' in resolvedType) {
    const isPlain = resolvedType.name === 'ModelParameter' && !isObject(value);
    return isPlain ? { string_value: textOfParameter(value, path) } : readMessage(resolvedType, value, path);
  }
  if (resolvedType !== null) return readEnum(resolvedType, value, path);
  switch (type) {
    case 'string':
      if (typeof value === 'string') return value;
      throw problem(path, `is ${shown(value)}; a text is expected`);
    case 'bool':
      if (typeof value === 'boolean') return value;
      throw problem(path, `is ${shown(value)}; true or false is expected`);
    case 'float':
    case 'double':
      if (typeof value === 'number' && Number.isFinite(value)) return value;
      throw problem(path, `is ${shown(value)}; a number is expected`);
    default:
      return wholeNumber(type, value, path);
  }
}

/** A parameter may be written as what it is: `a: 5` is `a: { string_value: "5" }`. */
function textOfParameter(value: unknown, path: FieldPath): string {
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  const isExact = typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value));
  if (isExact && Number.isFinite(value)) return String(value);
  const expected = 'a text, a number, true, false or { string_value: TEXT } is expected';
  throw problem(path, `is ${shown(value)}; ${expected}`);
}

const BOUNDS: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  uint64: [0, Number.MAX_SAFE_INTEGER],
};

/** 64-bit numbers may be written as texts, as protobuf's JSON has them. */
function wholeNumber(type: string, value: unknown, path: FieldPath): number {
  const [least, most] = BOUNDS[type]!;
  const number = typeof value === 'string' && /^-?\d{1,20}$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isInteger(number) && number >= least && number <= most)
    return number;
  const range = typeof number === 'number' ? ` from ${least} to ${most}` : '';
  throw problem(path, `is ${shown(value)}; a whole number${range} is expected`);
}

function readEnum(type: protobuf.Enum, value: unknown, path: FieldPath): string {
  const { values, valuesById } = type;
  if (typeof value === 'string' && Object.hasOwn(values, value)) return value;
  if (typeof value === 'number' && Object.hasOwn(valuesById, value)) return valuesById[value]!;
  throw problem(path, enumProblem(type, value));
}

/** What is wrong with a value of an enum, and which may be meant, as the rest of a sentence that begins with the field. */
export function enumProblem({ name, values }: protobuf.Enum, value: unknown): string {
  // Nobody writes the name that stands for nothing.
  const names = Object.keys(values).filter((one) => one !== 'TYPE_INVALID');
  const otherName = name === 'DataType' ? meantDataType(String(value)) : null;
  const meant = otherName ?? (typeof value === 'string' ? closestName(value, names) : null);
  const hint = meant === null ? '' : `${meant} may be meant: `;
  return `is ${shown(value)}; ${hint}one of ${names.join(', ')} is expected`;
}
