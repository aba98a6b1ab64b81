import { listOf, type Values, wholeNumber } from '../../../base/option-values.js';
import type { FlagSpec, FlagText } from '../../../callbacks/options/option.js';

/** An option of the server or a model that the engine does not know, under its plain name. */
export interface ServerOption<T = unknown, Configured = unknown> {
  values: Values<T>;
  /** Level of the option; model: each entry of `models` in a file may have its own. */
  level: 'server' | 'model';
  flag: FlagSpec;
  /** True where `skein serve` takes the option; false: it is of the work queue alone. */
  isForServe: boolean;
  /** True where `skein batch`, which has no clients, takes the option too. */
  isForBatch: boolean;
  /** Name of the option in the in-process host, where that differs; else null. */
  hostField: string | null;
  /** Exists for the type alone; no object has this field. */
  readonly configured?: Configured;
}

interface Where {
  isForServe?: boolean;
  isForBatch?: boolean;
  hostField?: string;
}

/** An option of the whole server. */
export function ofServer<T>(
  values: Values<T>,
  flag: FlagText & { default: NoInfer<T> },
  where?: Where,
): ServerOption<T, T>;
export function ofServer<T>(values: Values<T>, flag: FlagText, where?: Where): ServerOption<T, T | undefined>;
export function ofServer<T>(values: Values<T>, flag: FlagSpec, where: Where = {}): ServerOption<T> {
  return { values, level: 'server', flag, isForServe: true, isForBatch: true, hostField: null, ...where };
}

/** An option of a model, which each entry of `models` in a file may have for itself. */
export function ofModel<T>(
  values: Values<T>,
  flag: FlagText & { default: NoInfer<T> },
  where?: Where,
): ServerOption<T, T>;
export function ofModel<T>(values: Values<T>, flag: FlagText, where?: Where): ServerOption<T, T | undefined>;
export function ofModel<T>(values: Values<T>, flag: FlagSpec, where: Where = {}): ServerOption<T> {
  return { ...ofServer(values, flag, where), level: 'model' };
}

/** Options that `skein batch` does not take, since it has no clients. */
export const OF_CLIENTS = { isForBatch: false };

/** Groups of the help that several files of options share. */
export const ACCESS = 'Address and access';
export const REQUESTS = 'Requests and answers';

/** Values that several options have. */
export const NAMES = listOf('a name, or a list of names');
export const LONGEST_QUEUE = wholeNumber(1, 1_000_000);
export const DAY_SECONDS = 86_400;
