/** Demands of OpenAPI 3.1 on the parts of a document that this server writes. No part may have other fields. */
const text = { type: 'string', minLength: 1 };
const strict = (properties: Record<string, object>, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const mapOf = (value: object, names = '.') => ({
  type: 'object',
  patternProperties: { [names]: value },
  additionalProperties: false,
});
const ref = (name: string) => ({ $ref: `#/$defs/${name}` });

/** A JSON schema of the document. Schemas within it are checked by their own meta-schema. */
export const OPEN_API_STRUCTURE = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...strict(
    {
      openapi: { const: '3.1.0' },
      info: strict(
        {
          title: text,
          version: text,
          description: text,
          license: strict({ name: text, url: { ...text, pattern: '^https://' } }, ['name']),
        },
        ['title', 'version'],
      ),
      tags: { type: 'array', items: strict({ name: text, description: text }, ['name']) },
      paths: mapOf(mapOf(ref('operation'), '^(get|post|delete)$'), '^/'),
      components: strict({
        schemas: mapOf({ type: 'object' }, '^[a-zA-Z0-9._-]+$'),
        parameters: mapOf({ type: 'object' }, '^[a-zA-Z0-9._-]+$'),
        securitySchemes: mapOf(ref('securityScheme'), '^[a-zA-Z0-9._-]+$'),
      }),
      webhooks: { type: 'object', maxProperties: 0 },
    },
    ['openapi', 'info', 'paths'],
  ),
  $defs: {
    operation: strict(
      {
        tags: { type: 'array', items: text, minItems: 1 },
        operationId: { ...text, pattern: '^[a-zA-Z0-9]+$' },
        summary: text,
        description: text,
        deprecated: { type: 'boolean' },
        security: { type: 'array', items: mapOf({ type: 'array', maxItems: 0 }) },
        parameters: { type: 'array', items: ref('parameter') },
        requestBody: strict({ required: { type: 'boolean' }, content: mapOf(ref('mediaType'), '/') }, [
          'content',
        ]),
        responses: { ...mapOf(ref('response'), '^[1-5][0-9][0-9]$'), minProperties: 1 },
      },
      ['tags', 'operationId', 'summary', 'responses', 'security'],
    ),
    parameter: {
      ...strict(
        {
          name: text,
          in: { enum: ['query', 'header', 'path', 'cookie'] },
          required: { type: 'boolean' },
          description: text,
          deprecated: { type: 'boolean' },
          schema: { type: 'object' },
        },
        ['name', 'in', 'schema', 'description'],
      ),
      if: { properties: { in: { const: 'path' } } },
      // biome-ignore lint/suspicious/noThenProperty: a word of JSON schema.
      then: { properties: { required: { const: true } }, required: ['required'] },
    },
    response: strict(
      { description: text, headers: mapOf(ref('header')), content: mapOf(ref('mediaType'), '/') },
      ['description'],
    ),
    header: strict({ description: text, required: { type: 'boolean' }, schema: { type: 'object' } }, [
      'schema',
    ]),
    mediaType: strict(
      {
        schema: { type: 'object' },
        example: {},
        examples: mapOf(strict({ summary: text, value: {} }, ['value'])),
      },
      ['schema'],
    ),
    securityScheme: {
      oneOf: [
        strict({ type: { const: 'http' }, scheme: text, description: text }, ['type', 'scheme']),
        strict({ type: { const: 'apiKey' }, in: { enum: ['header'] }, name: text, description: text }, [
          'type',
          'in',
          'name',
        ]),
      ],
    },
  },
};
