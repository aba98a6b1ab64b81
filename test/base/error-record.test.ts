import { describe, expect, it } from 'vitest';
import { errorOf, recordOf } from '../../base/error-record.js';
import { field } from '../../base/named-text.js';
import { codeOf, SkeinError, textOf } from '../../base/skein-error.js';

class LimitError extends SkeinError {
  override name = 'LimitError';
  override readonly code = 'SKEIN_LIMIT';
  readonly limit = 7;
}

describe('the record of an error', () => {
  it('keeps fields, code, name and names in the text of an error of this package', () => {
    const thrown = new LimitError([field('maxTokens'), ' is above 7.']);
    const record = structuredClone(recordOf(thrown));
    expect(record).toMatchObject({ code: 'SKEIN_LIMIT', name: 'LimitError', held: { limit: 7 } });
    const told = errorOf(record);
    expect([codeOf(told), told.name, told.message, told.stack]).toEqual([
      'SKEIN_LIMIT',
      'LimitError',
      thrown.message,
      thrown.stack,
    ]);
    expect(textOf(told)).toEqual(thrown.text);
    expect(told).toMatchObject({ limit: 7 });
  });

  it('keeps name, message and code of another one, and nothing that could not cross', () => {
    const thrown = Object.assign(new TypeError('no luck'), { code: 'ERR_ODD', stream: () => {} });
    const told = errorOf(structuredClone(recordOf(thrown)));
    expect([told.name, told.message, 'stream' in told, { ...told }]).toMatchObject([
      'TypeError',
      'no luck',
      false,
      { code: 'ERR_ODD' },
    ]);
  });

  it.each([
    ['a text', 'no luck', 'no luck'],
    ['nothing', undefined, 'undefined'],
    ['an object', { a: 1 }, '[object Object]'],
  ])('is made of %s too', (_, thrown, message) => {
    expect(structuredClone(recordOf(thrown))).toMatchObject({
      name: 'Error',
      text: message,
      code: null,
      held: {},
    });
  });
});
