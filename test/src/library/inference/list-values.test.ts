import { describe, expect, it } from 'vitest';
import { whyNotOfType } from '../../../../src/library/inference/infer-call.js';

describe('whyNotOfType', () => {
  it.each([
    ['INT8', -128, 127],
    ['UINT8', 0, 255],
    ['INT16', -32768, 32767],
    ['UINT16', 0, 65535],
    ['INT32', -(2 ** 31), 2 ** 31 - 1],
    ['UINT32', 0, 2 ** 32 - 1],
    ['BOOL', 0, 1],
  ] as const)('takes the values of %s and no others', (datatype, least, most) => {
    expect(whyNotOfType(datatype, [least, most, BigInt(least), BigInt(most)])).toBeNull();
    for (const wrong of [least - 1, most + 1, BigInt(least) - 1n, BigInt(most) + 1n, 0.5, Number.NaN])
      expect(whyNotOfType(datatype, [0, wrong])).toBe(`${wrong} is no value of ${datatype}`);
  });

  it('takes numbers of 64 bits to the last digit', () => {
    expect(whyNotOfType('INT64', [2n ** 63n - 1n, -(2n ** 63n), 7])).toBeNull();
    expect(whyNotOfType('UINT64', [2n ** 64n - 1n])).toBeNull();
    for (const wrong of [2n ** 63n, 2 ** 63]) expect(whyNotOfType('INT64', [wrong])).not.toBeNull();
    for (const wrong of [2n ** 64n, -1n]) expect(whyNotOfType('UINT64', [wrong])).not.toBeNull();
  });

  it('takes booleans, floats, and leaves what are no numbers to others', () => {
    expect(whyNotOfType('BOOL', [true, false])).toBeNull();
    expect(whyNotOfType('FP32', [1.5, Number.NaN, Number.POSITIVE_INFINITY])).toBeNull();
    expect(whyNotOfType('INT32', ['a', null])).toBeNull();
  });

  it('takes no list for floats of 16 bits, which no number of JavaScript is', () => {
    for (const datatype of ['FP16', 'BF16'] as const)
      expect(whyNotOfType(datatype, [1])).toBe(`a Uint16Array of bits is expected for ${datatype}`);
  });
});
