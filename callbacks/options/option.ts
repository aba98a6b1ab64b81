import type { Values } from '../../base/option-values.js';

/** Groups of options in `--help` and in the documents, in their order. */
export const GROUPS = [
  'Models',
  'Model repository',
  'Address and access',
  'Requests and answers',
  'Batching',
  'KV cache',
  'Events of the KV cache',
  'LoRA adapters',
  'Models on demand',
  'Files and batches',
  'Speculation',
  'Work queue',
  'Running',
] as const;

export type Group = (typeof GROUPS)[number];

/** Unit of a number; '' for a bare number. */
export type Unit =
  | 'bytes'
  | 'seconds'
  | 'milliseconds'
  | 'tokens'
  | 'requests'
  | 'iterations'
  | 'connections'
  | 'streams'
  | 'regions'
  | 'files'
  | 'threads'
  | 'batches'
  | 'beams'
  | 'share'
  | '';

/** Text of an option in `skein serve --help` and in the documents. */
export interface FlagText {
  group: Group;
  /** True for the options most often wanted, which are listed first. */
  isCommon?: boolean;
  /** Description, in one line. */
  help: string;
  /** Unit of the value, for a number. */
  unit?: Unit;
  /** Placeholder of the value in --help. Default: the unit, or the possible values. */
  metavar?: string;
  /** Text of a default that is no value, such as "the model's". */
  defaultText?: string;
  /** Former name; it is refused with an error that names the present one. */
  formerly?: string;
  /** Names of vLLM with the same meaning, as flags and in a file. */
  aliases?: readonly string[];
  /** True where `skein run` and `skein chat` take the option too. */
  isForAsking?: boolean;
}

export interface FlagSpec extends FlagText {
  /** Value where none is given; undefined: the code that takes the option decides. */
  default?: unknown;
}

/**
 * A setting of the engine, under its name in GptManagerOptions.
 * T: type of the field. Name: plain name. Configured: type under the plain name; includes undefined where there is no
 * default.
 */
export interface EngineOption<
  T = unknown,
  Name extends string | null = string | null,
  Configured = unknown,
  Flag extends FlagSpec | null = FlagSpec | null,
> {
  values: Values<T>;
  /**
   * Plain name in Skein.load and in a file and, spelt their way, as flag and variable; null: only GptManager has the
   * option.
   */
  name: Name;
  /** Accepted values under the plain name. */
  plain: Values;
  /** Converts a plain value to the field's value; undefined leaves the field out. */
  toField(plain: unknown): T | undefined;
  /** Name in TensorRT-LLM's batch manager. */
  seedName: string | null;
  /** Default of GptManager, as text. */
  defaultText: string;
  /** Description, in one line. */
  help: string;
  /** The flag of `skein serve`; null: only programs can give the option. */
  flag: Flag;
  /**
   * True where V1 has no use for the option: a value under the plain name is then left out, since the server has it on
   * by default.
   */
  isInFlightOnly: boolean;
  /** Exists for the type alone; no object has this field. */
  readonly configured?: Configured;
}

interface About {
  seedName?: string | null;
  /** Default of GptManager: a value, or a description. */
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

/** Makes an option of GptManager alone. */
export function ofGptManager<T>(values: Values<T>, about: OfGptManager): EngineOption<T, null, never, null> {
  return { ...described(values, about), name: null, help: about.help, flag: null };
}

/** Makes an option that Skein.load takes too. */
export function ofPrograms<T, const Name extends string>(
  values: Values<T>,
  about: OfPrograms & { name: Name },
): EngineOption<T, Name, T | undefined, null> {
  return { ...described(values, about), name: about.name, help: about.help, flag: null };
}

/** Makes an option that Skein.load and `skein serve` take too, under its plain name. */
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

/** Fields of GptManagerOptions for the options of a table, all optional. */
export type Fields<Table> = {
  -readonly [Field in keyof Table]?: FieldOf<Table[Field]>;
};

/** Fields of GptManagerOptions for the options of a table, all required. */
export type GivenFields<Table> = {
  -readonly [Field in keyof Table]: FieldOf<Table[Field]>;
};

type FieldOf<Option> = Option extends { values: Values<infer T> } ? T : never;

/**
 * Options of a table by their plain names, with their types in a configuration. Options without a plain name are left
 * out.
 */
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
