import type { Args } from '../calls.js';
import type { Rendering } from '../rendering.js';
import type { Value } from '../values/value.js';

export type Filter = (run: Rendering, value: Value, args: Args) => Value;
export type Test = (run: Rendering, value: Value, args: Args) => boolean;

/** Filters and tests by name. They are here without their code, since some of them call others. */
export const FILTERS = new Map<string, Filter>();
export const TESTS = new Map<string, Test>();
