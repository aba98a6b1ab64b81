import * as z from 'zod';
import { messageOf } from '../../../base/error-text.js';
import { isObject, rule, SWITCH, shown, TEXT } from '../../../base/option-values.js';
import { asClause } from '../../../base/sentences.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { toolsFault } from '../../generation/chat-options.js';
import {
  isStandardSchema,
  jsonSchemaOf,
  type StandardSchema,
  type Validated,
  validatedBy,
} from '../../generation/standard-schema.js';
import type { FunctionTool } from '../../generation/tools/types.js';
import { optionFault, type Rules } from '../../options/option-faults.js';
import type { CallContext, ChatTool } from './chat-tool.js';

/** A function that is ready to be described, called and run. */
export interface ReadyTool {
  described: FunctionTool;
  validate(args: unknown): Promise<Validated>;
  /** undefined: the program answers its calls. */
  execute: ((args: never, context: CallContext) => unknown) | undefined;
}

const RULES: Rules<ChatTool> = {
  description: TEXT,
  input: rule('a Standard Schema, such as zod makes', isStandardSchema),
  parameters: rule('a JSON schema, an object', (value) => isObject(value) && !isStandardSchema(value)),
  strict: SWITCH,
  execute: rule('a function', (value) => typeof value === 'function'),
};

/** @throws InvalidRequestError for what is no tool, and for a schema that cannot be described or checked. */
export function readyTools(tools: Readonly<Record<string, unknown>>): ReadonlyMap<string, ReadyTool> {
  const ready = new Map(Object.entries(tools).map(([name, given]) => [name, readyTool(name, given)]));
  const fault = toolsFault(Array.from(ready.values(), ({ described }) => described));
  if (fault !== null) throw new InvalidRequestError(fault, 'tools');
  return ready;
}

function readyTool(name: string, given: unknown): ReadyTool {
  const place = `tools.${name}`;
  const fault = optionFault<ChatTool>(place, '{ description, input, execute }', given, RULES);
  if (fault !== null) throw new InvalidRequestError([`${place}: `, fault.message].flat(), place);
  const { description, input, parameters, strict, execute } = given as ChatTool;
  const described = { name, description, parameters: parameters ?? shownSchema(place, input), strict };
  const checked = input ?? (parameters && checkedSchema(place, parameters));
  const validate = async (args: unknown): Promise<Validated> =>
    checked === undefined ? { value: args } : validatedBy(checked, args);
  return { described, validate, execute };
}

function shownSchema(place: string, input: StandardSchema | undefined): FunctionTool['parameters'] {
  if (input === undefined) return undefined;
  const made = jsonSchemaOf(input);
  if ('schema' in made) return made.schema as NonNullable<FunctionTool['parameters']>;
  const words = `a schema of ${input['~standard'].vendor} ${made.lack}`;
  throw new InvalidRequestError(`${place}.input is ${words}; give it as parameters next to it.`, place);
}

function checkedSchema(place: string, parameters: NonNullable<FunctionTool['parameters']>): StandardSchema {
  try {
    return z.fromJSONSchema(parameters as Parameters<typeof z.fromJSONSchema>[0]);
  } catch (error) {
    const why = asClause(messageOf(error));
    const text = `${place}.parameters cannot be checked here (${why}); give a schema that validates, such as zod's, as input next to it.`;
    throw new InvalidRequestError(text, place);
  }
}

/** What a function wrote of its arguments, as the model wrote it, cannot be. */
export const noJson = (text: string) =>
  `The arguments are no JSON object: ${shown(text)}. Call the function again with a JSON object.`;
