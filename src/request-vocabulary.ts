import { NAMED_FIELDS, tensorsOfField } from '../callbacks/request/fields.js';
import { NAMED_PARAMETERS } from '../callbacks/request/parameters.js';

/** Routes that take requests for text, with different names for some fields. */
export type TextRoute = 'chat' | 'completions' | 'responses' | 'messages';

/** One thing that a request can ask for, with all its names. */
interface Term {
  /** Name in GenerateOptions and SeveralOptions. */
  option: string;
  /** Names of the request's tensors that carry it, and of its TokenRequest field. */
  inputs: readonly string[];
  /** Name of the API's field; default: the option in snake case. */
  field?: string;
  /** Names on routes that differ. */
  routes?: Partial<Record<TextRoute, string>>;
  /** Flag of commands that ask a model. */
  flag?: string;
}

/**
 * What a request can ask for: from tensors to options of programs, fields of each route and flags of the command line,
 * and back. It has PARAMETERS and REQUEST_FIELDS, but no prompt and no guide, which each caller names.
 */
export const REQUEST_VOCABULARY: readonly Term[] = [
  { option: 'stop', inputs: [], routes: { messages: 'stop_sequences' }, flag: 'stop' },
  { option: 'includeStop', inputs: [], field: 'include_stop_str_in_output' },
  { option: 'bestOf', inputs: ['best_of'] },
  { option: 'truncatePromptTokens', inputs: [] },
  { option: 'promptName', inputs: [] },
  ...NAMED_FIELDS.flatMap(([name, field]): Term[] => {
    const { option, field: ofRoutes, routes, flag } = field;
    if (option === undefined) return [];
    const tensors = tensorsOfField(field).map(([tensor]) => tensor);
    const inputs = [...(field.hasParts ? tensors.slice(0, 1) : tensors), name];
    return [
      {
        option,
        inputs,
        ...(ofRoutes === undefined ? {} : { field: ofRoutes }),
        ...(routes === undefined ? {} : { routes }),
        ...(flag === undefined ? {} : { flag }),
      },
    ];
  }),
  ...NAMED_PARAMETERS.map(
    ({ name, option, field, tensor, flag }): Term => ({
      option,
      inputs: tensor === name ? [name] : [tensor, name],
      field,
      ...(flag === null ? {} : { flag }),
    }),
  ),
];

const BY_INPUT = new Map(REQUEST_VOCABULARY.flatMap((term) => term.inputs.map((name) => [name, term])));
const BY_OPTION = new Map(REQUEST_VOCABULARY.map((term) => [term.option, term]));

/** The program's option for a tensor; null where there is none. */
export function optionOfInput(name: string): string | null {
  return BY_INPUT.get(name)?.option ?? null;
}

/** The route's field for a program's option; other names are returned as they are. */
export function fieldOfOption(option: string, route: TextRoute = 'chat'): string {
  const term = BY_OPTION.get(option);
  if (term === undefined) return option;
  return term.routes?.[route] ?? term.field ?? inSnakeCase(option);
}

/** The program's option for a route's field; null where there is none. */
export function optionOfField(field: string, route: TextRoute = 'chat'): string | null {
  return REQUEST_VOCABULARY.find(({ option }) => fieldOfOption(option, route) === field)?.option ?? null;
}

/** The API's field for a flag of the command line. @throws Error for an unknown flag */
export function fieldOfFlag(flag: string): string {
  const term = REQUEST_VOCABULARY.find((one) => one.flag === flag);
  if (term === undefined) throw new Error(`There is no flag --${flag} in the vocabulary of requests.`);
  return fieldOfOption(term.option);
}

function inSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
