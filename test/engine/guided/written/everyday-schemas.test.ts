import { expect, it } from 'vitest';
import { faultsOf } from './judge.js';
import { PYDANTIC_SCHEMAS } from './other-schemas.js';
import { ZOD_SCHEMAS } from './zod-schemas.js';

it.each([...ZOD_SCHEMAS, ...PYDANTIC_SCHEMAS].map((schema) => [schema.name, schema] as const))(
  '%s',
  (_, schema) => {
    expect(faultsOf(schema, 1)).toEqual([]);
  },
);
