import { field, says } from '../../../base/named-text.js';
import { asClause } from '../../../base/sentences.js';
import { lenientSchema } from '../../../engine/guided/sources/lenient-schema.js';
import type { JsonValue } from '../../../engine/guided/sources/schema-keywords.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { checkGuide, guideOf, tagGuide } from '../guided.js';
import type { TextCodec } from '../text-model.js';
import type { TagFormat } from './guide-format.js';
import { parameterTags } from './qwen3-coder-guide.js';
import type { FunctionTool, ToolFormatName } from './types.js';

/** The schema that calls of a function follow. */
export interface FollowedSchema {
  /** null: any arguments. */
  schema: Readonly<Record<string, unknown>> | null;
  /** False: what cannot be followed is left out. */
  isStrict: boolean;
}

export const ANY_ARGUMENTS: FollowedSchema = { schema: null, isStrict: true };

export function schemaFormat({ schema, isStrict }: FollowedSchema): TagFormat {
  return {
    type: 'json_schema',
    json_schema: schema ?? { type: 'object' },
    ...(isStrict ? {} : { strict: false }),
  };
}

/** Arguments as Python has them, with the values as JSON. */
export function keywordArguments(followed: FollowedSchema): TagFormat {
  if (followed.schema === null) return { type: 'regex', pattern: '([^"()]|"([^"\\\\\\n]|\\\\.)*")*' };
  return { ...schemaFormat(followed), style: 'keyword_arguments' };
}

/** Arguments as Gemma 4 writes them. @param hasSpecialQuotes true where the quotes of texts are a special token */
export function gemma4Arguments(followed: FollowedSchema, hasSpecialQuotes: boolean): TagFormat {
  return {
    ...schemaFormat(followed),
    style: 'gemma4',
    ...(hasSpecialQuotes && { special_quotes: true }),
  };
}

/** Schema of a function's arguments; an object without fields where the function declares none. */
export function parametersOf({ parameters }: FunctionTool): Readonly<Record<string, unknown>> {
  if (parameters !== undefined && Object.keys(parameters).length > 0) return parameters;
  return { type: 'object', properties: {}, additionalProperties: false };
}

/**
 * The schema that a function's calls follow. Of one that is not strict, what cannot be followed is left out, all of it where it is no
 * schema at all, and `warn` is given a sentence about it. @throws InvalidRequestError for a strict one, naming the keyword
 */
export async function followedSchema(
  tool: FunctionTool,
  param: string,
  format: ToolFormatName,
  codec: TextCodec,
  warn: (text: string) => void,
): Promise<FollowedSchema> {
  const schema = parametersOf(tool);
  try {
    if (!tool.strict) return await possibleSchema(tool, param, format, codec, warn);
    await guideOf({ json: schema }, param, codec);
    const strict = { schema, isStrict: true };
    if (format === 'gemma4') await checkGuide(tagGuide(gemma4Arguments(strict, false)), param, codec);
    return strict;
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    if (tool.strict)
      throw new InvalidRequestError(says`${field(param)}: ${error.text}`, param, error.apiCode);
    warn(`The parameters of the function '${tool.name}' are not followed: ${error.message}`);
    return ANY_ARGUMENTS;
  }
}

async function possibleSchema(
  tool: FunctionTool,
  param: string,
  format: ToolFormatName,
  codec: TextCodec,
  warn: (text: string) => void,
): Promise<FollowedSchema> {
  const schema = lenientSchema(parametersOf(tool) as JsonValue) as Record<string, unknown>;
  let leftOut: readonly string[] = [];
  await guideOf({ json: schema, isLenient: true }, param, codec, (found) => {
    leftOut = found;
  });
  const loose = { schema, isStrict: false };
  if (format === 'pythonic') leftOut = await checkGuide(tagGuide(keywordArguments(loose)), param, codec);
  if (format === 'gemma4') leftOut = await checkGuide(tagGuide(gemma4Arguments(loose, false)), param, codec);
  if (format === 'qwen3_coder') leftOut = [...leftOut, ...leftOutOfTags(tool, schema)];
  if (leftOut.length === 0) return { schema, isStrict: true };
  warn(`The parameters of the function '${tool.name}' are not followed ${leftOut.join('; ')}.`);
  return loose;
}

/** What of a schema cannot be followed where arguments are tags. @throws InvalidRequestError where they cannot be tags at all */
function leftOutOfTags(tool: FunctionTool, schema: FollowedSchema['schema']): string[] {
  parameterTags(tool, { schema, isStrict: false });
  try {
    parameterTags(tool, { schema, isStrict: true });
    return [];
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    return [`(${asClause(error.message)})`];
  }
}
