import {
  type FieldOf,
  type NamesOf,
  type Parameter,
  valueOfRoute,
} from '../../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS, type PARAMETERS } from '../../../callbacks/request/parameters.js';
import { type NumberParam, SAMPLING_RANGES } from '../../../callbacks/sampling-params.js';
import type { SamplingDefaults } from '../../generation/sampling-defaults.js';
import type { TextRequest } from '../../generation/text-generation.js';
import { number } from '../../schemas/fields.js';

type NameIn<P> = P extends { ollama: { name: infer Name extends string } }
  ? Name
  : P extends { ollama: object }
    ? FieldOf<P>
    : never;

type Table = typeof PARAMETERS;
type Numbers = NamesOf<Table, 'number' | 'integer'>;

/** Schemas of the options that are numbers. A key has a range of its own. */
export const PARAMETER_OPTIONS = Object.fromEntries(
  NAMED_PARAMETERS.flatMap(({ name, ollama, parameter }) => {
    if (ollama === null || !('range' in parameter)) return [];
    const range = SAMPLING_RANGES[name as NumberParam];
    const taken = parameter.isOffBelowZero ? { ...range, min: -1 } : range;
    return [[ollama, number(taken, parameter.ollama!.help)]];
  }),
) as { [Name in Numbers as NameIn<Table[Name]>]: ReturnType<typeof number> };

/**
 * The parameters of a request's options, by the options of programs. Where Ollama has a value of its own for a request
 * that has none, what the model recommends goes before it. Source: DefaultOptions in Ollama's api/types.go.
 */
export function parametersOf(
  options: Readonly<Record<string, unknown>>,
  recommended: SamplingDefaults,
): Partial<TextRequest> {
  const given: Record<string, unknown> = {};
  for (const { option, ollama, parameter } of NAMED_PARAMETERS) {
    if (ollama === null) continue;
    const value = options[ollama] ?? presetOf(parameter, recommended[option as keyof SamplingDefaults]);
    if (value === undefined || (parameter.kind === 'key' && (value as number) < 0)) continue;
    given[option] = valueOfRoute(parameter, value);
  }
  return given;
}

function presetOf({ ollama }: Parameter, recommended: number | undefined): number | undefined {
  return ollama?.default === undefined ? undefined : (recommended ?? ollama.default);
}
