import { describe, expect, it } from 'vitest';
import { invalidIdError } from '../../callbacks/request-id-error.js';

describe('invalidIdError', () => {
  it('accepts all of u64', () => {
    expect(invalidIdError(0n)).toBeNull();
    expect(invalidIdError(2n ** 64n - 1n)).toBeNull();
  });

  it.each([
    [-1n, '-1', -1n],
    [2n ** 64n, '18446744073709551616', 2n ** 64n],
    [5, '5', null],
    ['x'.repeat(1000), `${'x'.repeat(100)}…`, null],
    [undefined, 'undefined', null],
    [Symbol('id'), 'Symbol(id)', null],
    [Object.create(null), 'an object', null],
  ])('reports %o', (id, found, requestId) => {
    const error = invalidIdError(id);
    expect(error).toMatchObject({ code: 'SKEIN_REQUEST_ID', reason: 'invalid', requestId });
    expect(error?.message).toBe(`requestId is ${found}; it must be a bigint from 0 to 18446744073709551615.`);
  });

  it('does not write out a bigint of many bits', () => {
    const id = 1n << 40_000_000n;
    expect(invalidIdError(id)?.message).toMatch(/^requestId is a bigint of more than 256 bits; /);
  });
});
