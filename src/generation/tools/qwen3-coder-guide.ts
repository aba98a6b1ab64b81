import { InvalidRequestError } from '../../errors/request-errors.js';
import type { FollowedSchema } from './followed-schema.js';
import { either, sequence, type TagFormat, text } from './guide-format.js';
import { typesOf } from './parameter-types.js';
import { PARAMETER_BEGIN, PARAMETER_END } from './qwen3-coder-parser.js';
import type { FunctionTool } from './types.js';

type Schema = Readonly<Record<string, unknown>>;

/** Fields of a schema with definitions that other parts refer to. */
const DEFINITIONS = ['$defs', 'definitions'] as const;

/**
 * Formats of a function's arguments as tags, in the order of its parameters.
 */
export function parameterTags(tool: FunctionTool, { schema, isStrict }: FollowedSchema): TagFormat {
  if (schema === null) return { type: 'any_text' };
  const properties = (schema.properties ?? {}) as Readonly<Record<string, unknown>>;
  const required = new Set((schema.required ?? []) as readonly string[]);
  const isPlain = schema.anyOf === undefined && schema.oneOf === undefined && schema.allOf === undefined;
  if (!isPlain || schema.$ref !== undefined)
    throw refusal(tool, 'an object without choices and references is expected');
  const definitions = Object.fromEntries(
    DEFINITIONS.flatMap((name) => (schema[name] === undefined ? [] : [[name, schema[name]]])),
  );
  const tags = Object.entries(properties).map(([name, value]) => {
    if (/[<>\n]/.test(name)) throw refusal(tool, `the parameter '${name}' cannot be the name of a tag`);
    const tag = {
      type: 'tag',
      begin: `${PARAMETER_BEGIN}${name}>\n`,
      content: valueFormat(tool, name, value, { definitions, isStrict }),
      end: `\n${PARAMETER_END}\n`,
    };
    return required.has(name) ? tag : either(tag, text(''));
  });
  return tags.length === 0 ? text('') : sequence(...tags);
}

/** Format of a value: a text as it is, any other value as JSON. */
function valueFormat(
  tool: FunctionTool,
  name: string,
  schema: unknown,
  { definitions, isStrict }: { definitions: Schema; isStrict: boolean },
): TagFormat {
  const isObject = typeof schema === 'object' && schema !== null;
  const types = typesOf(schema, 0);
  if (!isObject || types === null || !types.has('string')) {
    return {
      type: 'json_schema',
      json_schema: isObject ? { ...schema, ...definitions } : (schema as boolean),
      ...(isStrict ? {} : { strict: false }),
    };
  }
  const { enum: values, const: constant, pattern, format, minLength, maxLength } = schema as Schema;
  if (pattern !== undefined || format !== undefined) {
    if (!isStrict) return { type: 'any_text' };
    const keyword = pattern === undefined ? 'format' : 'pattern';
    throw refusal(tool, `${keyword} of the parameter '${name}' is not supported where arguments are tags`);
  }
  const choices = constant !== undefined ? [constant] : (values as readonly unknown[] | undefined);
  if (choices !== undefined) {
    return either(...choices.map((value) => text(typeof value === 'string' ? value : JSON.stringify(value))));
  }
  if (minLength === undefined && maxLength === undefined) return { type: 'any_text' };
  // The text excludes the character that could end it too early.
  return { type: 'regex', pattern: `[^<]{${minLength ?? 0},${maxLength ?? ''}}` };
}

function refusal({ name }: FunctionTool, reason: string): InvalidRequestError {
  return new InvalidRequestError(`The parameters of the function '${name}' are refused: ${reason}.`, 'tools');
}
