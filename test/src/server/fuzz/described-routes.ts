import * as fc from 'fast-check';
import type { Json } from './json-text.js';

/** The keywords of JSON schema that the server's own description uses. */
export interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  const?: Json;
  enum?: readonly Json[];
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  allOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  propertyNames?: Schema;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  minItems?: number;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  minLength?: number;
  pattern?: string;
}

interface Operation {
  parameters?: readonly { name: string; in: string; schema: Schema }[];
  requestBody?: {
    content: Record<
      string,
      { schema: Schema; examples?: Record<string, { value: { [key: string]: Json } }> }
    >;
  };
}

export interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** A route as the server describes it. */
export interface DescribedRoute {
  /** Such as POST /v1/completions. */
  name: string;
  method: string;
  path: string;
  /** Schemas of the body's fields, and examples; null: it has no body. */
  body: { fields: Readonly<Record<string, Schema>>; examples: readonly { [key: string]: Json }[] } | null;
  query: readonly string[];
}

/**
 * Every route but those of the Open Inference Protocol and of Ollama, whose errors have other forms: test/src/server/kserve/fuzz.test.ts
 * and ollama.test.ts have them.
 */
export function describedRoutes(api: OpenApi): DescribedRoute[] {
  const paths = Object.entries(api.paths).filter(
    ([path]) => !/^\/(v2|api)\//.test(path) && path !== '/v2' && path !== '/models/infer',
  );
  return paths.flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { parameters = [], requestBody }]) => {
      const content = requestBody?.content['application/json'];
      const schema = content && resolved(content.schema, api);
      return {
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        body: content
          ? {
              fields: schema!.properties!,
              examples: Object.values(content.examples ?? {}).map(({ value }) => value),
            }
          : null,
        query: parameters.filter(({ in: place }) => place === 'query').map(({ name }) => name),
      };
    }),
  );
}

function resolved(schema: Schema, api: OpenApi): Schema {
  return schema.$ref === undefined ? schema : api.components.schemas[schema.$ref.split('/').at(-1)!]!;
}

/** Values as a schema describes them; what it cannot say (which fields go together) they may break. */
export function sampleOf(schema: Schema, api: OpenApi, depth = 0): fc.Arbitrary<Json> {
  const found = resolved(schema, api);
  const either = found.anyOf ?? found.oneOf ?? found.allOf;
  if (found.const !== undefined) return fc.constant(found.const);
  if (found.enum !== undefined) return fc.constantFrom(...found.enum);
  if (either !== undefined) return fc.oneof(...either.map((one) => sampleOf(one, api, depth)));
  const types = typeof found.type === 'string' ? [found.type] : (found.type ?? []);
  if (types.length === 0) return fc.constantFrom<Json>(null, 1, 'x', {});
  return fc.oneof(...types.map((type) => sampleOfType(type, found, api, depth)));
}

function sampleOfType(type: string, schema: Schema, api: OpenApi, depth: number): fc.Arbitrary<Json> {
  const inner = (one: Schema | boolean | undefined) =>
    typeof one === 'object' && depth < 8 ? sampleOf(one, api, depth + 1) : fc.constant<Json>('x');
  const min = schema.minimum ?? schema.exclusiveMinimum ?? 0;
  const max = Math.max(min, Math.min(schema.maximum ?? min + 8, min + 8));
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: Math.ceil(min), max: Math.floor(max) });
    case 'number':
      return fc.double({ min, max, noNaN: true });
    case 'string':
      if (schema.pattern?.includes('\\d')) return fc.integer({ min: 0, max: 99 }).map(String);
      return fc.constantFrom('a', 'Paris', 'f_1');
    case 'array':
      return fc.array(inner(schema.items), { minLength: schema.minItems ?? 0, maxLength: 2 });
    default:
      return objectOf(schema, api, inner);
  }
}

function objectOf(
  schema: Schema,
  api: OpenApi,
  inner: (one: Schema | boolean | undefined) => fc.Arbitrary<Json>,
): fc.Arbitrary<Json> {
  const { properties, required = [], additionalProperties, propertyNames } = schema;
  if (properties === undefined) {
    const key = propertyNames === undefined ? fc.constantFrom('a', 'type') : sampleOf(propertyNames, api);
    return fc.dictionary(key.map(String), inner(additionalProperties), { maxKeys: 2 });
  }
  const fields = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, inner(one)]));
  return fc.record(fields, { requiredKeys: [...required] }) as fc.Arbitrary<Json>;
}
