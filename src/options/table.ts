import type { Values } from '../../base/option-values.js';
import type { KV_CACHE_OPTIONS } from '../../callbacks/options/kv-cache-options.js';
import type { MANAGER_EVENTS, MANAGER_OPTIONS } from '../../callbacks/options/manager-options.js';
import type { EngineOption, FlagSpec, PlainFields } from '../../callbacks/options/option.js';
import type { OPTIONAL_PARAMS } from '../../callbacks/options/optional-params.js';
import type { PEFT_CACHE_OPTIONS } from '../../callbacks/options/peft-cache-options.js';
import { ENGINE_TABLE } from '../../callbacks/options/table.js';
import { ACCESS_OPTIONS } from './server/access.js';
import { LOADING_OPTIONS } from './server/loading.js';
import { MODEL_OPTIONS } from './server/models.js';
import { QUEUE_OPTIONS } from './server/queue.js';
import { REQUEST_OPTIONS } from './server/requests.js';
import { RUNNING_OPTIONS } from './server/running.js';
import type { ServerOption } from './server/server-option.js';

/** The server's part of the table of options, in the order of the help; the engine's is in callbacks/options/. */
const SERVER_OPTIONS = {
  ...MODEL_OPTIONS,
  ...ACCESS_OPTIONS,
  ...REQUEST_OPTIONS,
  ...QUEUE_OPTIONS,
  ...RUNNING_OPTIONS,
  ...LOADING_OPTIONS,
};

type Configured<Option> = Option extends ServerOption<infer _T, infer C> ? C : never;

type ServerValues<Table> = { -readonly [Name in keyof Table]: Configured<Table[Name]> };

/** Options of the server's part that Skein.load takes too, with their values. */
export type LoadingValues = ServerValues<typeof LOADING_OPTIONS>;

/** Options of the engine by their plain names: those of the command line or, with null, those of programs alone. */
export type EngineValues<Flag extends FlagSpec | null> = PlainFields<typeof MANAGER_OPTIONS, Flag> &
  PlainFields<typeof MANAGER_EVENTS, Flag> &
  PlainFields<typeof OPTIONAL_PARAMS, Flag> &
  PlainFields<typeof KV_CACHE_OPTIONS, Flag> &
  PlainFields<typeof PEFT_CACHE_OPTIONS, Flag>;

/** Every option of `skein serve` with its value. */
export type OptionValues = ServerValues<typeof SERVER_OPTIONS> & EngineValues<FlagSpec>;

export type OptionName = keyof OptionValues;

/** An option of `skein serve`, from the command line, the environment or a file. */
export interface Option {
  name: OptionName;
  values: Values;
  flag: FlagSpec;
  /** True where each entry of `models` in a file may have its own. */
  isOfAModel: boolean;
  isForServe: boolean;
  isForBatch: boolean;
  /** Path in GptManagerOptions and name in the engine's errors; null for an option of the server's part. */
  engine: { path: string; nameInErrors: string; option: EngineOption } | null;
  /** Name of the option in the in-process host, where that differs; else null. */
  hostField: string | null;
}

function ofServer([name, option]: [string, ServerOption]): Option {
  const { values, flag, level, isForServe, isForBatch, hostField } = option;
  const isOfAModel = level === 'model';
  return {
    name: name as OptionName,
    values,
    flag,
    isOfAModel,
    isForServe,
    isForBatch,
    engine: null,
    hostField,
  };
}

const ofEngine = ENGINE_TABLE.flatMap(({ path, nameInErrors, option }): Option[] => {
  const { name, plain: values, flag } = option;
  if (flag === null) return [];
  const engine = { path, nameInErrors, option };
  return [
    {
      name: name as OptionName,
      values,
      flag,
      isOfAModel: true,
      isForServe: true,
      isForBatch: true,
      engine,
      hostField: null,
    },
  ];
});

/** All options of `skein serve`, each written once: the server's in server/, the engine's in callbacks/options/. */
export const OPTIONS: readonly Option[] = [...Object.entries(SERVER_OPTIONS).map(ofServer), ...ofEngine];

export const OPTION_NAMES: readonly OptionName[] = OPTIONS.map(({ name }) => name);

const BY_NAME = new Map(OPTIONS.map((option) => [option.name, option]));

export function optionOf(name: OptionName): Option {
  return BY_NAME.get(name)!;
}

/** Spells a flag: kv-cache-tokens of kvCacheTokens. */
export function flagName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Spells a variable: SKEIN_KV_CACHE_TOKENS of kvCacheTokens. */
export function variableName(option: string): string {
  return `SKEIN_${flagName(option).replaceAll('-', '_').toUpperCase()}`;
}

/** Text of the option's default. */
export function defaultText({ flag }: Pick<Option, 'flag'>): string {
  return flag.defaultText ?? String(flag.default);
}

/** The sentence that lists the values of an option; '' where it takes others. */
export function oneOfThese(choices: readonly string[] | undefined): string {
  return choices === undefined ? '' : ` One of ${choices.join(', ')}.`;
}

/** Placeholder of the value in --help: its unit, or the possible values. */
export function metavarOf({ values, flag }: Pick<Option, 'values' | 'flag'>): string {
  return flag.metavar ?? values.choices?.join('|') ?? (flag.unit || 'N').toUpperCase();
}
