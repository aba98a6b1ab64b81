import type { Values } from '../../base/option-values.js';

/** What belongs together in `--help` and in the documents, in their order. */
export const GROUPS = [
  'Models',
  'Model repository',
  'Address and access',
  'Requests and answers',
  'Batching',
  'KV cache',
  'Speculation',
  'Running',
] as const;

export type Group = (typeof GROUPS)[number];

/** What numbers count; '' for those that are bare numbers. */
export type Unit =
  | 'bytes'
  | 'seconds'
  | 'milliseconds'
  | 'tokens'
  | 'requests'
  | 'iterations'
  | 'connections'
  | 'threads'
  | 'beams'
  | 'share'
  | '';

/** What `skein serve` tells of an option that it takes. */
export interface FlagText {
  group: Group;
  /** Among the few that most want to know, which come first. */
  isCommon?: boolean;
  /** One line. */
  help: string;
  /** Of a number. */
  unit?: Unit;
  /** What stands for the value in --help. Not given: the unit, or the values that there are. */
  metavar?: string;
  /** How the default is written where it is no value, such as "the model's". */
  defaultText?: string;
  /** A name that it had, which is refused with the one that it has. */
  formerly?: string;
  /** Names of vLLM that mean the same, as flags and in a file. */
  aliases?: readonly string[];
  /** `skein run` and `skein chat` take it too. */
  isForAsking?: boolean;
}

export interface FlagSpec extends FlagText {
  /** What it is where nothing is given; not given: what takes it decides. */
  default?: unknown;
}

/**
 * A setting of the engine, under the name that it has in GptManagerOptions.
 * T: the field's type. Name: its plain name. Configured: the type under that name, undefined with it where there is no default.
 */
export interface EngineOption<
  T = unknown,
  Name extends string | null = string | null,
  Configured = unknown,
  Flag extends FlagSpec | null = FlagSpec | null,
> {
  values: Values<T>;
  /** Its plain name, in Skein.load, in a file and, in their spelling, as flag and variable; null: GptManager's alone. */
  name: Name;
  /** What it takes under its plain name. */
  plain: Values;
  /** The value of the field for a plain one; undefined leaves the field out. */
  toField(plain: unknown): T | undefined;
  /** Name in TensorRT-LLM's batch manager. */
  seedName: string | null;
  /** How the default of GptManager is written. */
  defaultText: string;
  /** One line. */
  help: string;
  /** null: programs alone can give it. */
  flag: Flag;
  /** Left out with V1, which has no use for it, where it came under its plain name: the server has it on. */
  isInFlightOnly: boolean;
  /** For the type alone: there is no such field. */
  readonly configured?: Configured;
}

interface About {
  seedName?: string | null;
  /** Of GptManager: a value, or in words. */
  default: string | number | boolean;
}

interface OfGptManager extends About {
  help: string;
}

interface OfPrograms extends OfGptManager {
  name: string;
}

interface OfServe<T, Name extends string, Plain> extends About {
  name: Name;
  plain?: Values<Plain>;
  toField?: (plain: Plain) => T | undefined;
  isInFlightOnly?: boolean;
  flag: FlagText;
}

/** An option of GptManager alone. */
export function ofGptManager<T>(values: Values<T>, about: OfGptManager): EngineOption<T, null, never, null> {
  return { ...described(values, about), name: null, help: about.help, flag: null };
}

/** An option that Skein.load takes too. */
export function ofPrograms<T, const Name extends string>(
  values: Values<T>,
  about: OfPrograms & { name: Name },
): EngineOption<T, Name, T | undefined, null> {
  return { ...described(values, about), name: about.name, help: about.help, flag: null };
}

/** An option that Skein.load and `skein serve` take too, under its plain name. */
export function ofServe<T, const Name extends string, Plain = T>(
  values: Values<T>,
  about: OfServe<T, Name, Plain> & { flag: { default: NoInfer<Plain> } },
): EngineOption<T, Name, Plain, FlagSpec>;
export function ofServe<T, const Name extends string, Plain = T>(
  values: Values<T>,
  about: OfServe<T, Name, Plain>,
): EngineOption<T, Name, Plain | undefined, FlagSpec>;
export function ofServe<T, Name extends string>(
  values: Values<T>,
  { name, plain, toField, isInFlightOnly = false, flag, ...about }: OfServe<T, Name, unknown>,
): EngineOption<T, Name, unknown, FlagSpec> {
  const own = {
    ...(plain === undefined ? {} : { plain }),
    ...(toField === undefined ? {} : { toField }),
  };
  return { ...described(values, about), ...own, name, help: flag.help, flag, isInFlightOnly };
}

function described<T>(values: Values<T>, { seedName = null, default: preset }: About) {
  return {
    values,
    plain: values as Values,
    toField: (plain: unknown) => plain as T,
    seedName,
    defaultText: String(preset),
    isInFlightOnly: false,
  };
}

/** The options of a table as fields of GptManagerOptions, none of which has to be given. */
export type Fields<Table> = {
  -readonly [Field in keyof Table]?: FieldOf<Table[Field]>;
};

/** The same where all have to be given. */
export type GivenFields<Table> = {
  -readonly [Field in keyof Table]: FieldOf<Table[Field]>;
};

type FieldOf<Option> = Option extends { values: Values<infer T> } ? T : never;

/** The options of a table that have a plain name, by that: what they are in a configuration. */
export type PlainFields<Table, Flag extends FlagSpec | null> = {
  -readonly [Field in keyof Table as NameOf<Table[Field], Flag>]: Table[Field] extends EngineOption<
    infer _T,
    string,
    infer Configured,
    Flag
  >
    ? Configured
    : never;
};

type NameOf<Option, Flag extends FlagSpec | null> = Option extends {
  name: infer Name extends string;
  flag: Flag;
}
  ? Name
  : never;
