import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  answerCoding,
  messageCoding,
  percentEncoded,
  timeoutMsOf,
} from '../../../../../src/server/grpc/wire/metadata.js';

describe('the time of a call', () => {
  it.each([
    ['5S', 5000],
    ['1H', 3_600_000],
    ['2M', 120_000],
    ['20m', 20],
    ['500u', 0.5],
    ['1000000n', 1],
    ['99999999H', 359_999_996_400_000],
    [undefined, null],
  ])('%s is %s ms', (text, expected) => {
    const found = timeoutMsOf({ 'grpc-timeout': text });
    if (expected === null) expect(found).toBeNull();
    else expect(found).toBeCloseTo(expected);
  });

  it.each(['', '5', 'S', '5s', '-5S', '1.5S', '123456789S', '5S5S'])('%s is none', (text) => {
    expect(() => timeoutMsOf({ 'grpc-timeout': text })).toThrow('grpc-timeout is wrong');
  });
});

describe('the message of a status', () => {
  it('is any text, in visible ASCII', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        const encoded = percentEncoded(text);
        expect(encoded).toMatch(/^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/);
        expect(decodeURIComponent(encoded)).toBe(Buffer.from(text).toString('utf8'));
      }),
    );
  });

  it('stays as it is where it can', () => {
    expect(percentEncoded("input 'X' of 'm' [1,2]")).toBe("input 'X' of 'm' [1,2]");
    expect(percentEncoded('100 % é')).toBe('100 %25 %C3%A9');
  });

  it('is cut between two characters where it is too long for metadata', () => {
    const cut = percentEncoded('é'.repeat(10_000));
    expect(cut.length).toBeLessThanOrEqual(4096);
    expect(cut).toMatch(/^(?:%C3%A9)+\.\.\.$/);
    expect(percentEncoded('a'.repeat(10_000)).length).toBeLessThanOrEqual(4096);
  });

  it('keeps the spaces at its ends, which the value of a header may not have', () => {
    expect(percentEncoded('invalid datatype for input ')).toBe('invalid datatype for input%20');
    expect(percentEncoded('  two words \t')).toBe('%20%20two words%20%09');
    expect(percentEncoded(' ')).toBe('%20');
  });

  it('may be half a character', () => {
    expect(percentEncoded('\ud800')).toBe('%EF%BF%BD');
  });
});

describe('the coding of messages', () => {
  it('is one of those that there are', () => {
    expect(messageCoding({})).toBeNull();
    expect(messageCoding({ 'grpc-encoding': 'identity' })).toBeNull();
    expect(messageCoding({ 'grpc-encoding': 'gzip' })).toBe('gzip');
    expect(() => messageCoding({ 'grpc-encoding': 'snappy' })).toThrow("'snappy' are not supported");
  });

  it('is that of the client, for answers too, where it reads it', () => {
    expect(answerCoding({ 'grpc-encoding': 'gzip', 'grpc-accept-encoding': 'identity, deflate, gzip' })).toBe(
      'gzip',
    );
    expect(answerCoding({ 'grpc-encoding': 'gzip', 'grpc-accept-encoding': 'identity' })).toBeNull();
    expect(answerCoding({ 'grpc-accept-encoding': 'identity,deflate,gzip' })).toBeNull();
  });
});
