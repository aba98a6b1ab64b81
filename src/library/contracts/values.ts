import { z } from 'zod';
import { MAX_INT32 } from '../../../base/int32.js';

/** Forms of values in the JSON of contracts. */
export const NO_LESS_THAN_ZERO = z.number().int().min(0).max(MAX_INT32);
export const token = NO_LESS_THAN_ZERO;
export const tokens = z.array(token);
/** A whole number from 0 on. */
export const count = z.number().int().min(0);
export const flag = z.boolean().optional();
/** A float: what JSON cannot write is a text. */
export const float = z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]);
export const floats = z.array(float);
/** A whole number from 0 to 2^64 - 1, in decimal digits. */
export const u64 = z
  .string()
  .regex(/^\d{1,20}$/, { abort: true })
  .refine((text) => BigInt(text) < 1n << 64n, { message: 'must be below 2^64' });

/** A type with no optional fields: which fields are optional is told apart by the fields' own types. */
type Whole<T> = T extends readonly (infer Entry)[]
  ? Whole<Entry>[]
  : T extends object
    ? { [Field in keyof T]-?: Whole<Exclude<T[Field], undefined>> }
    : T;

type Same<A, B> = [Whole<A>, Whole<B>] extends [Whole<B>, Whole<A>] ? true : false;

/** Does not compile unless both types are the same: a schema has exactly the fields of its type. */
export function sameType<A, B>(_isSame: Same<A, B>): void {}
