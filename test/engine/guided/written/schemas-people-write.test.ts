import { expect, it } from 'vitest';
import { faultsOf } from './judge.js';
import { MCP_SCHEMAS, PYDANTIC_SCHEMAS, TYPEBOX_SCHEMAS, VALIBOT_SCHEMAS } from './other-schemas.js';
import { ZOD_SCHEMAS } from './zod-schemas.js';

const ALL = [...ZOD_SCHEMAS, ...VALIBOT_SCHEMAS, ...TYPEBOX_SCHEMAS, ...PYDANTIC_SCHEMAS, ...MCP_SCHEMAS];

it.each(ALL.map((schema) => [schema.name, schema] as const))('%s', (_, schema) => {
  expect(faultsOf(schema, 12)).toEqual([]);
});
