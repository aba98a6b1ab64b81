import { describe, expect, it } from 'vitest';
import type { TokenRequest } from '../../../../callbacks/token-request.js';
import { say, toyServer } from '../../support/toy-server.js';

const messages = [{ role: 'user', content: 'hi' }];
const schema = { type: 'object', properties: { a: { type: 'integer' } } };

async function guideOf(path: string, fields: object): Promise<TokenRequest['guide']> {
  return (await answered(path, fields)).guide;
}

/** The guide that the engine gets, and the warning of the answer. */
async function answered(path: string, fields: object) {
  let seen: TokenRequest | undefined;
  const toy = toyServer((request) => {
    seen = request;
    return say('x');
  });
  const response = await toy.post(path, {
    ...(path.includes('chat') ? { messages } : path.includes('completions') ? { prompt: 'a' } : {}),
    ...fields,
  });
  expect(response.status).toBe(200);
  return { guide: seen!.guide, warning: response.headers.get('x-skein-warning') };
}

describe('a guide', () => {
  const asText = JSON.stringify(schema);
  it.each<[object, object | undefined]>([
    [{ response_format: { type: 'text' } }, undefined],
    [{ response_format: null, guided_json: null, structured_outputs: null }, undefined],
    [{ response_format: { type: 'json_object' } }, { type: 'json', guide: '' }],
    [
      { response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } } },
      { type: 'json_schema', guide: asText },
    ],
    [
      { response_format: { type: 'structural_tag', format: { type: 'any_text' } } },
      { type: 'structural_tag', guide: '{"type":"structural_tag","format":{"type":"any_text"}}' },
    ],
    [{ guided_json: schema }, { type: 'json_schema', guide: asText }],
    [{ guided_json: asText }, { type: 'json_schema', guide: asText }],
    [{ guided_regex: '[0-9]+' }, { type: 'regex', guide: '[0-9]+' }],
    [{ guided_choice: ['yes', 'no'] }, { type: 'choice', guide: '["yes","no"]' }],
    [{ guided_grammar: 'root ::= "a"' }, { type: 'ebnf_grammar', guide: 'root ::= "a"' }],
    [{ structured_outputs: { json: schema } }, { type: 'json_schema', guide: asText }],
    [{ structured_outputs: { json_object: true } }, { type: 'json', guide: '' }],
    [{ structured_outputs: { choice: ['a'] } }, { type: 'choice', guide: '["a"]' }],
  ])('%j reaches the engine', async (fields, guide) => {
    expect(await guideOf('/v1/chat/completions', fields)).toEqual(guide);
  });

  const loose = { type: 'array', items: { type: 'string', nullable: true, unheard: {} } };
  const followed = JSON.stringify({ type: 'array', items: { type: 'string' } });
  it.each([
    { type: 'json_schema', json_schema: { name: 'n', schema: loose } },
    { type: 'json_schema', json_schema: { name: 'n', schema: loose, strict: false } },
    { type: 'json_object', schema: loose },
    { type: 'json_object', value: loose },
  ])('%j leaves out what a schema may ignore', async (response_format) => {
    const guide = { type: 'json_schema', guide: followed };
    expect(await guideOf('/v1/chat/completions', { response_format })).toEqual(guide);
    expect(await guideOf('/v1/completions', { response_format })).toEqual(guide);
  });

  const partly = { type: 'array', uniqueItems: true, items: { type: 'string', format: 'phone' } };
  it.each([
    [
      '/v1/chat/completions',
      { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: partly } } },
    ],
    ['/v1/completions', { response_format: { type: 'json_object', schema: partly } }],
    ['/v1/responses', { input: 'x', text: { format: { type: 'json_schema', name: 'n', schema: partly } } }],
  ])(
    'a schema that is not strict is followed as far as it can be: %s says what is left out',
    async (path, fields) => {
      const { guide, warning } = await answered(path, fields);
      const format = { type: 'json_schema', json_schema: partly, strict: false };
      expect(guide?.type).toBe('structural_tag');
      expect(JSON.parse(guide!.guide)).toEqual({ type: 'structural_tag', format });
      expect(warning).toMatch(
        /^The schema of the answer is not followed at its root: uniqueItems is .*; at \/items: the format "phone" is not/,
      );
    },
  );

  it('comes with completions too', async () => {
    expect(await guideOf('/v1/completions', { guided_regex: 'a' })).toEqual({ type: 'regex', guide: 'a' });
  });

  it.each<[object, string, string]>([
    [
      {
        response_format: { type: 'json_schema', json_schema: { strict: true, schema: { $dynamicRef: '#' } } },
      },
      'response_format',
      'the keyword $dynamicRef is not supported',
    ],
    [
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'n', strict: true, schema: { type: 'string', nullable: true } },
        },
      },
      'response_format',
      'the keyword nullable is not known',
    ],
    [{ guided_json: { type: 'string', format: 'phone' } }, 'guided_json', 'the format'],
    [{ response_format: { type: 'xml' } }, 'response_format.type', ''],
    [{ response_format: { type: 'json_object' }, guided_regex: 'a' }, 'guided_regex', 'exclude each other'],
    [
      { response_format: { type: 'json_object', schema, value: schema } },
      'response_format.value',
      'exclude each other',
    ],
    [{ guided_regex: '(' }, 'guided_regex', 'a ( is not closed'],
    [{ guided_json: '{' }, 'guided_json', 'is not JSON'],
    [{ guided_grammar: 'root ::= root' }, 'guided_grammar', 'No text matches'],
    [{ guided_choice: [] }, 'guided_choice', ''],
    [{ structured_outputs: { regex: 'a', json: {} } }, 'structured_outputs', 'json, regex are given'],
    [{ guided_regex: 'a', ignore_eos: true }, 'guided_regex', 'end tokens'],
    [{ guided_json: { description: 'x'.repeat(1_000_000) } }, 'guided_json', 'characters long'],
  ])('%j is refused', async (fields, param, why) => {
    const response = await toyServer(() => say('x')).post('/v1/chat/completions', {
      messages,
      stream: true,
      ...fields,
    });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { param: string; message: string } };
    expect(error.param).toBe(param);
    expect(error.message).toContain(why);
  });
});
