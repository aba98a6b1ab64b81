import * as z from 'zod';
import {
  type FieldOf,
  inShownOrder,
  type NamedParameter,
  type NamesOf,
  type Parameter,
  shownBounds,
  valueOfRoute,
} from '../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS, type PARAMETERS } from '../../callbacks/request/parameters.js';
import { number, optional } from './fields.js';

type Table = typeof PARAMETERS;
/** A key has a range of its own on each route. */
type Shown = NamesOf<Table, 'number' | 'integer' | 'flag'>;
type AliasOf<P> = P extends { alias: { field: infer Alias extends string } } ? Alias : never;

const flag = (text: string, preset: unknown) => optional(z.boolean(), { description: text, default: preset });

type FieldFor<P> = P extends { kind: 'flag' } ? ReturnType<typeof flag> : ReturnType<typeof number>;

/** Schemas of the parameters by their names on the HTTP routes. */
type ParameterFields = {
  -readonly [Name in Shown as FieldOf<Table[Name]>]: FieldFor<Table[Name]>;
} & { -readonly [Name in Shown as AliasOf<Table[Name]>]: FieldFor<Table[Name]> };

export const PARAMETER_FIELDS = Object.fromEntries(
  inShownOrder(NAMED_PARAMETERS).flatMap(fieldsOf),
) as unknown as ParameterFields;

function fieldsOf({ field, parameter }: NamedParameter): [string, z.ZodType][] {
  if (parameter.kind === 'key') return [];
  const { help, default: preset, alias } = parameter;
  if (parameter.kind === 'flag') return [[field, flag(help, preset)]];
  const range = rangeOf(parameter);
  return [
    [field, number(range, { description: help, default: preset })],
    ...(alias === undefined ? [] : [[alias.field, number(range, alias.help)] satisfies [string, z.ZodType]]),
  ];
}

function rangeOf(parameter: Parameter) {
  const [min, max] = shownBounds(parameter)!;
  return { min: parameter.isOffBelowZero ? -1 : min, max, integer: parameter.kind === 'integer' };
}

/** The parameters of a parsed request, by the options of programs. */
export function parametersOf(request: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const { field, option, parameter } of NAMED_PARAMETERS) {
    const value = request[field];
    if (value !== undefined) given[option] = valueOfRoute(parameter, value);
  }
  return given;
}
