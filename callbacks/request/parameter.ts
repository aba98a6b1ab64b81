import type { RecommendedAs } from '../../models/checkpoints/recommended-sampling.js';

/** What a request parameter holds: a number, a whole number, a switch, or a key of random numbers (u64). */
export type ParameterKind = 'number' | 'integer' | 'flag' | 'key';

/** Type of the tensor that carries a parameter of a kind. */
export const TENSOR_TYPES = {
  number: 'f32',
  integer: 'i32',
  flag: 'bool',
  key: 'u64',
} as const satisfies Record<ParameterKind, string>;

/** Both ends included. */
export type Bounds = readonly [min: number, max: number];

/**
 * One parameter of a request. Each fact stands here once; types, checks, tensors, messages, fields, flags and documents
 * follow from it. The entry's name in the table is that of its field in TokenRequest.
 */
export type Parameter = NumberParameter | SwitchParameter;

interface NumberParameter extends Facts {
  kind: 'number' | 'integer';
  range: Bounds;
  default: number;
}

interface SwitchParameter extends Facts {
  kind: 'flag' | 'key';
  /** A key that is not given is drawn. */
  default: false | null;
}

interface Facts {
  /** Name of the input tensor, for GptManager and for KServe. */
  tensor: string;
  /** Field of the HTTP routes. Default: the tensor's name. */
  field?: string;
  /** Option of programs. Default: the entry's name. */
  option?: string;
  /** Description of the HTTP field. */
  help: string;
  /** Range on the HTTP routes and the command line, where it is narrower than the engine's. */
  routeRange?: Bounds;
  /** True if clients of other servers also write -1 for 0. */
  isOffBelowZero?: true;
  /** Parameter without which this one has no effect. */
  of?: string;
  /**
   * Values that leave a beam search as it is, the preferred one last. A request with none of the parameters that have
   * such values is greedy.
   */
  neutralToBeams?: readonly number[];
  /** Second name on the HTTP routes, that of llama.cpp. */
  alias?: { field: string; help: string };
  /**
   * Names of other servers, with the values that change nothing: the error for a request that uses one gives
   * this name.
   */
  elsewhere?: Readonly<Record<string, readonly unknown[]>>;
  /** Ollama's option. Absent: its API lacks the parameter. `name` defaults to the HTTP field. */
  ollama?: { name?: string; help: string; default?: number };
  /** Its names in the files in which a model's makers recommend a value. Absent: they have none. */
  recommendedAs?: RecommendedAs;
  /** True if text models in a KServe repository do not list the tensor. */
  isNoTextInput?: true;
  /** Flag of `skein run` and `skein chat`, named like the HTTP field. */
  flag?: { metavar: string; help: string; range?: Bounds };
  /** Field of the dashboard's form. Absent: it has none. */
  form?: FormFacts;
  /** Name of the entry before which people see this one: in fields, flags and the form. */
  shownBefore?: string;
}

interface FormFacts {
  label: string;
  /** True for those that most readers want. */
  isUsual?: true;
  /** What an empty field shows. Default: the parameter's default. */
  empty?: string;
  /** Value that the field begins with. */
  value?: number;
  /** Default: 1. */
  step?: number;
  /** Limits of the field, where they are narrower than the route's. */
  min?: number;
  max?: number;
}

export type ParameterTable = Readonly<Record<string, Parameter>>;

/** Type of a parameter's value in the engine. */
export type ValueOf<P> = P extends { kind: 'flag' }
  ? boolean
  : P extends { kind: 'key' }
    ? bigint | null
    : number;

/** Values of all parameters of a table. */
export type ValuesOf<Table> = { -readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/** Options of programs that have the names of the parameters themselves. */
export type OptionsOf<Table> = {
  -readonly [Name in keyof Pick<Table, OwnNamed<Table>>]?: ValueOf<Table[Name]> | undefined;
};

type OwnNamed<Table> = {
  [Name in keyof Table]: Table[Name] extends { option: string } ? never : Name;
}[keyof Table];

/** Names of the parameters of a kind. */
export type NamesOf<Table, Kind extends ParameterKind> = {
  [Name in keyof Table]: Table[Name] extends { kind: Kind } ? Name : never;
}[keyof Table];

/** Name of a parameter on the HTTP routes. */
export type FieldOf<P> = P extends { field: infer Field extends string }
  ? Field
  : P extends { tensor: infer Tensor extends string }
    ? Tensor
    : never;

/** Name of a parameter's tensor. */
export type TensorOf<P> = P extends { tensor: infer Tensor extends string } ? Tensor : never;

/** A parameter with all of its names. */
export interface NamedParameter<Name extends string = string> {
  name: Name;
  option: string;
  field: string;
  tensor: string;
  /** Ollama's option; null: its API lacks the parameter. */
  ollama: string | null;
  /** Flag of the command line, without its dashes; null: it has none. */
  flag: string | null;
  parameter: Parameter;
}

/** The parameters of a table with all of their names, in its order. */
export function namedParameters<Name extends string>(
  table: Readonly<Record<Name, Parameter>>,
): readonly NamedParameter<Name>[] {
  return (Object.entries(table) as [Name, Parameter][]).map(([name, parameter]) => {
    const { tensor, option = name, field = tensor, ollama, flag } = parameter;
    return {
      name,
      option,
      field,
      tensor,
      ollama: ollama === undefined ? null : (ollama.name ?? field),
      flag: flag === undefined ? null : field.replaceAll('_', '-'),
      parameter,
    };
  });
}

/** The same parameters in the order in which people see them. */
export function inShownOrder<Named extends NamedParameter>(parameters: readonly Named[]): Named[] {
  const shown = parameters.filter(({ parameter }) => parameter.shownBefore === undefined);
  for (const one of parameters) {
    const { shownBefore } = one.parameter;
    if (shownBefore === undefined) continue;
    const place = shown.findIndex(({ name }) => name === shownBefore);
    shown.splice(place < 0 ? shown.length : place, 0, one);
  }
  return shown;
}

/** Limits of a parameter for people, before -1 is written for 0; undefined: it is no number. */
export function shownBounds(parameter: Parameter): Bounds | undefined {
  return 'range' in parameter ? (parameter.routeRange ?? parameter.range) : undefined;
}

/** The engine's value for one of a route. */
export function valueOfRoute({ isOffBelowZero }: Parameter, value: unknown): unknown {
  return isOffBelowZero && (value as number) < 0 ? 0 : value;
}
