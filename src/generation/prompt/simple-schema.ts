import { isObject } from '../../../base/option-values.js';
import type { FunctionTool } from '../tools/types.js';

type Schema = Readonly<Record<string, unknown>>;

/** Deepest level of a schema that is kept; functions have two or three. */
const MAX_DEPTH = 16;
/** Most values of a simple schema: references may write a definition many times over. */
const MAX_VALUES = 20_000;

/**
 * A function in the form that every template takes: each schema has one `type` and a `description`. Of alternatives the
 * first is kept that is not null; references are replaced by their definitions, and null is no default. What is lost is
 * how the function is described, not what its calls have to follow.
 */
export function simpleTool(tool: FunctionTool): FunctionTool {
  const { name, description = '', parameters = {}, strict } = tool;
  return {
    name,
    description,
    parameters: new SimpleSchema(parameters).made(),
    ...(strict !== undefined && { strict }),
  };
}

class SimpleSchema {
  readonly #root: Schema;
  #values = 0;

  constructor(root: Schema) {
    this.#root = root;
  }

  made(): Schema {
    const { description: _, ...whole } = this.#simple(this.#root, 0);
    return { ...whole, type: 'object', properties: whole.properties ?? {} };
  }

  #simple(given: unknown, depth: number): Schema {
    const schema = depth > MAX_DEPTH || this.#values++ > MAX_VALUES ? {} : this.#resolved(given);
    const { properties, items, required, default: initial } = schema;
    const choices = choicesOf(schema)?.filter((choice) => choice !== null) ?? [];
    return {
      type: typeOf(schema),
      description: typeof schema.description === 'string' ? schema.description : '',
      ...(choices.length > 0 && { enum: choices }),
      ...(isObject(properties) && { properties: this.#each(properties, depth + 1) }),
      ...(isObject(properties) && Array.isArray(required) && { required }),
      ...(isObject(items) && { items: this.#simple(items, depth + 1) }),
      ...(initial !== undefined && initial !== null && { default: initial }),
    };
  }

  #each(properties: Schema, depth: number): Schema {
    return Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [name, this.#simple(schema, depth)]),
    );
  }

  /** The schema with what its references and alternatives say, as far as they go. */
  #resolved(given: unknown): Schema {
    let schema: Schema = isObject(given) ? given : {};
    for (let step = 0; step < MAX_DEPTH; step++) {
      const { $ref: reference, anyOf, oneOf, allOf, ...own } = schema;
      const inner =
        typeof reference === 'string' ? [this.#at(reference)] : alternativeOf(anyOf ?? oneOf, allOf);
      if (inner === null) return own;
      schema = Object.assign({}, ...inner, own);
    }
    return {};
  }

  /** The definition at `#/a/b`; {}: there is none. */
  #at(reference: string): Schema {
    let found: unknown = this.#root;
    for (const key of reference
      .replace(/^#\/?/, '')
      .split('/')
      .filter((part) => part !== '')) {
      const name = key.replaceAll('~1', '/').replaceAll('~0', '~');
      found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
    }
    return isObject(found) ? found : {};
  }
}

/** Schemas that say more of one: the first alternative that is not null, or all parts; null: there are none. */
function alternativeOf(alternatives: unknown, parts: unknown): Schema[] | null {
  if (Array.isArray(parts)) return parts.filter(isObject);
  if (!Array.isArray(alternatives)) return null;
  const schemas = alternatives.filter(isObject);
  return [schemas.find(({ type }) => type !== 'null') ?? {}];
}

function choicesOf({ enum: choices, const: only }: Schema): readonly unknown[] | undefined {
  if (only !== undefined) return [only];
  return Array.isArray(choices) ? choices : undefined;
}

function typeOf(schema: Schema): string {
  const { type, properties, items, prefixItems } = schema;
  const named = Array.isArray(type) ? type.find((one) => one !== 'null') : type;
  if (typeof named === 'string') return named;
  if (properties !== undefined) return 'object';
  if (items !== undefined || prefixItems !== undefined) return 'array';
  const example = choicesOf(schema)?.find((choice) => choice !== null);
  if (typeof example === 'number') return Number.isInteger(example) ? 'integer' : 'number';
  return typeof example === 'boolean' ? 'boolean' : 'string';
}
