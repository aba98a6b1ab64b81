import { describe, expect, it } from 'vitest';
import { writtenJson } from '../../../base/written-json.js';
import { type BatchRequest, parseBatchLine } from '../../../src/batch/batch-line.js';

const RULES = { maxLineBytes: 2 ** 22 };

function bodyOf(body: string, url = '/v1/chat/completions'): string {
  const text = `{"custom_id": "a", "method": "POST", "url": "${url}", "body": ${body}}`;
  const read = parseBatchLine(
    { number: 1, bytes: Buffer.from(text), end: text.length, isWhole: true },
    RULES,
  ) as BatchRequest;
  return writtenJson(read.body);
}

describe('the body of a line', () => {
  const numbers = '{"chat_template_kwargs":{"big":12345678901234567890,"whole":1.0,"small":1e2}}';

  it('keeps its numbers as they were written, for templates that show them', () => {
    expect(bodyOf(numbers)).toBe(numbers);
    expect(bodyOf(numbers, '/v1/responses')).toBe(numbers.replace('{', '{"store":false,'));
  });

  it('is read quickly where it is very long, and its numbers are values then', () => {
    const long = JSON.stringify('x'.repeat(2 ** 20));
    expect(bodyOf(`{"n":1.0,"text":${long}}`)).toBe(`{"n":1,"text":${long}}`);
  });
});
