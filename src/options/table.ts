import type { Values } from '../../base/option-values.js';
import type { KV_CACHE_OPTIONS } from '../../callbacks/options/kv-cache-options.js';
import type { MANAGER_OPTIONS } from '../../callbacks/options/manager-options.js';
import type { EngineOption, FlagSpec, PlainFields } from '../../callbacks/options/option.js';
import type { OPTIONAL_PARAMS } from '../../callbacks/options/optional-params.js';
import { ENGINE_TABLE } from '../../callbacks/options/table.js';
import { type LOADING_OPTIONS, SERVER_OPTIONS, type ServerOption } from './server-options.js';

type Configured<Option> = Option extends ServerOption<infer _T, infer C> ? C : never;

type ServerValues<Table> = { -readonly [Name in keyof Table]: Configured<Table[Name]> };

/** Of the server's part, what Skein.load takes too. */
export type LoadingValues = ServerValues<typeof LOADING_OPTIONS>;

/** The engine's options by their plain names: those of the command line, or (null) those that programs alone can give. */
export type EngineValues<Flag extends FlagSpec | null> = PlainFields<typeof MANAGER_OPTIONS, Flag> &
  PlainFields<typeof OPTIONAL_PARAMS, Flag> &
  PlainFields<typeof KV_CACHE_OPTIONS, Flag>;

/** Every option of `skein serve` with its value. */
export type OptionValues = ServerValues<typeof SERVER_OPTIONS> & EngineValues<FlagSpec>;

export type OptionName = keyof OptionValues;

/** An option of `skein serve`, wherever it is read. */
export interface Option {
  name: OptionName;
  values: Values;
  flag: FlagSpec;
  /** A model may have one of its own: an entry of `models` in a file. */
  isOfAModel: boolean;
  isForBatch: boolean;
  /** In the engine's part: where it stands in GptManagerOptions, and what it is called in errors of the engine. */
  engine: { path: string; nameInErrors: string; option: EngineOption } | null;
  /** What the host in this process calls it. */
  hostField: string | null;
}

function ofServer([name, option]: [string, ServerOption]): Option {
  const { values, flag, level, isForBatch, hostField } = option;
  const isOfAModel = level === 'model';
  return { name: name as OptionName, values, flag, isOfAModel, isForBatch, engine: null, hostField };
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
      isForBatch: true,
      engine,
      hostField: null,
    },
  ];
});

/** All options of `skein serve`, each written once: the server's in server-options.ts, the engine's in callbacks/options/. */
export const OPTIONS: readonly Option[] = [...Object.entries(SERVER_OPTIONS).map(ofServer), ...ofEngine];

export const OPTION_NAMES: readonly OptionName[] = OPTIONS.map(({ name }) => name);

const BY_NAME = new Map(OPTIONS.map((option) => [option.name, option]));

export function optionOf(name: OptionName): Option {
  return BY_NAME.get(name)!;
}

/** kvCacheTokens -> kv-cache-tokens. */
export function flagName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** kvCacheTokens -> SKEIN_KV_CACHE_TOKENS. */
export function variableName(option: string): string {
  return `SKEIN_${flagName(option).replaceAll('-', '_').toUpperCase()}`;
}

/** How the default is written. */
export function defaultText({ flag }: Pick<Option, 'flag'>): string {
  return flag.defaultText ?? String(flag.default);
}

/** What stands for the value: its unit, or the values that there are. */
export function metavarOf({ values, flag }: Pick<Option, 'values' | 'flag'>): string {
  return flag.metavar ?? values.choices?.join('|') ?? (flag.unit || 'N').toUpperCase();
}
