import { expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { parseJsonObject } from '../../../models/checkpoints/file-reading.js';

it('is one line, whatever it quotes of the file', () => {
  const { message } = new CheckpointError('a\n\r\t\u0000\u007f\u0085b "ü" \\.');
  expect(message).toBe('a\\n\\r\\t\\u0000\\u007f\\u0085b "ü" \\.');
});

it('quotes JSON with a line break in it on one line', () => {
  expect(() => parseJsonObject('the header', '{"dtype":\nF32"}')).toThrow(
    /^the header: is not valid JSON: [^\n]+\.$/,
  );
});
