import type protobuf from 'protobufjs';
import { closestName } from '../../base/did-you-mean.js';
import { isObject, shown } from '../../base/option-values.js';
import { meantDataType } from './meant-data-type.js';
import { ModelConfigError } from './model-config-error.js';
import { whyFieldIsRefused } from './refused-fields.js';
import type { FieldPath } from './written-config.js';

/** Elements of one list or map: a model has few inputs, and a step for each model of an ensemble. */
const MAX_ELEMENTS = 4096;

/** An error with the rest of a sentence that begins with the field. */
const problem = (path: FieldPath, rest: string) => new ModelConfigError(rest, { path });

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
    const refused = whyFieldIsRefused(type, name, read[name]);
    if (refused !== null) throw problem([...path, name], refused);
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
    if (entries.length > MAX_ELEMENTS) throw tooMany(path, entries.length);
    return Object.fromEntries(entries.map(([key, one]) => [key, readValue(field, one, [...path, key])]));
  }
  if (!field.repeated) return readValue(field, value, path);
  const list = Array.isArray(value) ? value : [value];
  if (list.length > MAX_ELEMENTS) throw tooMany(path, list.length);
  return list.map((one, i) => readValue(field, one, [...path, i]));
}

function tooMany(path: FieldPath, count: number): ModelConfigError {
  return problem(path, `has ${count} elements; at most ${MAX_ELEMENTS} are taken`);
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

const BOUNDS: Readonly<Record<string, readonly [bigint, bigint]>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [BigInt(Number.MIN_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER)],
  uint64: [0n, 2n ** 64n - 1n],
};

/** The greatest double that a uint64 holds: what it stands for, "never" as a delay, is that of 2^64 - 1. */
const MAX_UINT64 = 2 ** 64 - 2 ** 11;

/**
 * 64-bit numbers may be written as texts, as protobuf's JSON has them. Those without a sign are delays and counts, for which the
 * nearest double does. A parser of JSON has rounded 2^64 - 1 to 2^64 already.
 */
function wholeNumber(type: string, value: unknown, path: FieldPath): number {
  const [least, most] = BOUNDS[type]!;
  const exact = exactOf(value);
  const greatest = type === 'uint64' && typeof value === 'number' ? 2n ** 64n : most;
  if (exact !== null && exact >= least && exact <= greatest) return Math.min(Number(exact), MAX_UINT64);
  const range = typeof value === 'number' || exact !== null ? ` from ${least} to ${most}` : '';
  throw problem(path, `is ${shown(value)}; a whole number${range} is expected`);
}

/** The whole number that is written; null: it is none. */
function exactOf(value: unknown): bigint | null {
  if (typeof value === 'string') return /^-?\d{1,20}$/.test(value) ? BigInt(value) : null;
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : null;
}

function readEnum(type: protobuf.Enum, value: unknown, path: FieldPath): string {
  const { values, valuesById } = type;
  if (typeof value === 'string' && Object.hasOwn(values, value)) return value;
  if (typeof value === 'number' && Object.hasOwn(valuesById, value)) return valuesById[value]!;
  throw problem(path, enumProblem(type, value));
}

/** What is wrong with a value of an enum, and which may be meant, as the rest of a sentence that begins with the field. */
export function enumProblem({ name, values }: protobuf.Enum, value: unknown): string {
  // TYPE_INVALID is never meant.
  const names = Object.keys(values).filter((one) => one !== 'TYPE_INVALID');
  const otherName = name === 'DataType' ? meantDataType(String(value)) : null;
  const meant = otherName ?? (typeof value === 'string' ? closestName(value, names) : null);
  const hint = meant === null ? '' : `${meant} may be meant: `;
  return `is ${shown(value)}; ${hint}one of ${names.join(', ')} is expected`;
}
