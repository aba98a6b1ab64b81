import { toStandardJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type GuidedOptions, guideOf } from '../../../src/generation/guided.js';

const guide = (guided: GuidedOptions) => guideOf(guided, 'guided', {});

describe('a Standard Schema as a guide', () => {
  it('is the JSON schema of what it accepts', async () => {
    const schema = z.object({ name: z.string(), tags: z.array(z.string()).default([]) });
    const { type, guide: text } = await guide({ json: schema });
    expect(type).toBe('json_schema');
    expect(JSON.parse(text)).toMatchObject({ properties: { name: { type: 'string' } }, required: ['name'] });
  });

  it('may be one of any library that makes JSON schemas, also as a function', async () => {
    const schema = toStandardJsonSchema(v.object({ name: v.string() }));
    const asFunction = Object.assign(() => true, { '~standard': schema['~standard'] });
    for (const json of [schema, asFunction]) {
      const { guide: text } = await guide({ json });
      expect(JSON.parse(text)).toMatchObject({ properties: { name: { type: 'string' } } });
    }
  });

  it('is refused where the library makes none', async () => {
    await expect(guide({ json: v.object({ name: v.string() }) })).rejects.toThrow(
      'guided has json: a schema of valibot without ~standard.jsonSchema',
    );
    await expect(guide({ json: z.object({ day: z.date() }) })).rejects.toThrow(
      'guided has json: a schema of zod that has no JSON schema: Date cannot be represented in JSON Schema.',
    );
  });

  it('is not taken for one where a JSON schema has such a name', async () => {
    const json = { type: 'object', '~standard': { vendor: 'x' } };
    await expect(guide({ json })).rejects.toThrow('the keyword ~standard is not known');
  });
});
