import { describe, expect, it } from 'vitest';
import { INPUT_TENSORS } from '../../callbacks/request/tensors.js';
import { SAMPLING_SETTINGS } from '../../src/asking/sampling-settings.js';
import {
  fieldOfFlag,
  fieldOfOption,
  optionOfField,
  optionOfInput,
  REQUEST_VOCABULARY,
  type TextRoute,
} from '../../src/request-vocabulary.js';
import { RESPONSE_FIELDS } from '../../src/server/openai/responses/response-words.js';
import { chatRequestSchema } from '../../src/server/openai/schemas/chat.js';
import { completionRequestSchema } from '../../src/server/openai/schemas/completions.js';
import { responseRequestSchema } from '../../src/server/openai/schemas/responses.js';
import { fieldsOf } from '../../src/server/web/field-words.js';

describe('the vocabulary of requests', () => {
  it('has each name once, and tensors that there are', () => {
    const inputs = REQUEST_VOCABULARY.flatMap((term) => term.inputs);
    const options = REQUEST_VOCABULARY.map(({ option }) => option);
    expect(new Set(inputs).size).toBe(inputs.length);
    expect(new Set(options).size).toBe(options.length);
    const tensors = inputs.filter((name) => name.includes('_'));
    expect(tensors.length).toBeGreaterThan(20);
    expect(tensors.filter((name) => !Object.hasOwn(INPUT_TENSORS, name))).toEqual([]);
  });

  it.each<[TextRoute, object]>([
    ['chat', chatRequestSchema.shape],
    ['completions', completionRequestSchema.shape],
    ['responses', responseRequestSchema.shape],
  ])('calls fields as the schema of %s does', (route, shape) => {
    for (const option of ['maxTokens', 'temperature', 'topP', 'topK', 'logProbs', 'cacheSalt']) {
      const name = fieldOfOption(option, route);
      expect(Object.keys(shape)).toContain(name);
      expect(optionOfField(name, route)).toBe(option);
    }
  });

  it('goes from a tensor to the field of each route', () => {
    const option = optionOfInput('request_output_len')!;
    const names = (['chat', 'completions', 'responses'] as const).map((route) =>
      fieldOfOption(option, route),
    );
    expect(names).toEqual(['max_tokens', 'max_tokens', 'max_output_tokens']);
    expect(optionOfInput('end_id')).toBeNull();
    expect(optionOfField('messages')).toBeNull();
  });

  it('has the flags that ask a model', () => {
    const flags = REQUEST_VOCABULARY.flatMap(({ flag }) => flag ?? []);
    expect(SAMPLING_SETTINGS.map(({ name }) => name).toSorted()).toEqual(flags.toSorted());
    expect(fieldOfFlag('max-tokens')).toBe('max_tokens');
    expect(() => fieldOfFlag('min-tokens')).toThrow('There is no flag --min-tokens');
  });
});

describe('the names of a route', () => {
  it.each([
    ['tools[3].function.name', 'tools[3].name'],
    ['tool_choice.allowed_tools.tools', 'tool_choice.tools'],
    ['response_format.json_schema', 'text.format.json_schema'],
    ['messages[0].content', 'input[0].content'],
    ['maxTokens', 'max_output_tokens'],
    ['tools', 'tools'],
    ['messages_of_mine', 'messages_of_mine'],
  ])('of responses: %s is %s', (name, own) => {
    expect(RESPONSE_FIELDS(name)).toBe(own);
  });

  it('keep an index where it was', () => {
    expect(fieldsOf('chat', [['tools[].function', 'functions[]']])('tools[12].function.parameters')).toBe(
      'functions[12].parameters',
    );
  });
});
