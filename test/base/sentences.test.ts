import { describe, expect, it } from 'vitest';
import { asSentence, counted } from '../../base/sentences.js';
import { QueueFullError } from '../../callbacks/token-request.js';

describe('asSentence', () => {
  it.each([
    ['it failed', 'it failed.'],
    ['it failed.', 'it failed.'],
    ['is it truncated?', 'is it truncated?'],
    ['stopped at line 1, column 5:\n', 'stopped at line 1, column 5.'],
    [' two\n  lines ', 'two lines.'],
  ])('%j', (text, sentence) => {
    expect(asSentence(text)).toBe(sentence);
  });
});

describe('counted', () => {
  it('has one form for one and another for all else', () => {
    expect([0, 1, 2].map((count) => counted(count, 'request'))).toEqual([
      '0 requests',
      '1 request',
      '2 requests',
    ]);
    expect(new QueueFullError(1).message).toBe('The queue is full: 1 request is waiting; try again later.');
    expect(new QueueFullError(2).message).toMatch(/2 requests are waiting/);
  });
});
