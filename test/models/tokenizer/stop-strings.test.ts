import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopStringMatcher } from '../../../models/tokenizer/stop-strings.js';
import { draws } from '../../support/scale.js';

/** Grows the text unit by unit and looks at its end: the first stop to be complete, the longest of those. */
function naive(text: string, stops: string[]): { end: number; length: number; index: number } | null {
  for (let end = 1; end <= text.length; end++) {
    let best: { end: number; length: number; index: number } | null = null;
    for (const [index, stop] of stops.entries()) {
      if (text.slice(0, end).endsWith(stop) && stop.length > (best?.length ?? 0)) {
        best = { end, length: stop.length, index };
      }
    }
    if (best !== null) return best;
  }
  return null;
}

function run(matcher: StopStringMatcher, chunks: string[]): { text: string; matched: number | null } {
  let text = '';
  for (const chunk of chunks) {
    const pushed = matcher.push(chunk);
    text += pushed.emit;
    if (pushed.matched !== null) return { text, matched: pushed.matched };
  }
  return { text: text + matcher.end().emit, matched: null };
}

function cut(text: string, sizes: number[]): string[] {
  const chunks: string[] = [];
  let rest = text;
  for (const size of sizes) {
    chunks.push(rest.slice(0, size));
    rest = rest.slice(size);
  }
  return [...chunks, rest];
}

const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 24 });
const stopList = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 5 }), {
  maxLength: 4,
});

describe('StopStringMatcher', () => {
  it('does not leak the beginning of a stop string that is split over pieces', () => {
    const matcher = new StopStringMatcher(['\n\nUser:']);
    expect(matcher.push('Hi.\n')).toEqual({ emit: 'Hi.', matched: null });
    expect(matcher.push('\nUs')).toEqual({ emit: '', matched: null });
    expect(matcher.push('er: x')).toEqual({ emit: '', matched: 0 });
    expect(matcher.push('more')).toEqual({ emit: '', matched: 0 });
    expect(matcher.end()).toEqual({ emit: '', matched: 0 });
  });

  it('gives back what turned out to be text', () => {
    const matcher = new StopStringMatcher(['stop']);
    expect(matcher.push('a sto').emit).toBe('a ');
    expect(matcher.push('ne').emit).toBe('stone');
    expect(matcher.push(' st').emit).toBe(' ');
    expect(matcher.end()).toEqual({ emit: 'st', matched: null });
  });

  it('holds back no more than could still become a stop string', () => {
    const matcher = new StopStringMatcher(['aab']);
    expect(matcher.push('aaa').emit).toBe('a');
    expect(matcher.push('b')).toEqual({ emit: '', matched: 0 });
  });

  it('lets the match win that is complete first, then the longest', () => {
    expect(run(new StopStringMatcher(['abcd', 'bc']), ['abcd'])).toEqual({ text: 'a', matched: 1 });
    expect(run(new StopStringMatcher(['bc', 'abc', 'abc']), ['xabc'])).toEqual({ text: 'x', matched: 1 });
  });

  it('keeps the stop string on request', () => {
    const matcher = new StopStringMatcher(['END'], { includeStop: true });
    expect(run(matcher, ['the E', 'ND of'])).toEqual({ text: 'the END', matched: 0 });
  });

  it('passes everything on where there is nothing to stop at', () => {
    expect(run(new StopStringMatcher([]), ['a', 'b'])).toEqual({ text: 'ab', matched: null });
  });

  it('refuses an empty stop string', () => {
    expect(() => new StopStringMatcher(['a', ''])).toThrow(/Stop string 1 is empty/);
  });

  it('finds what a search of the whole text finds, however it is cut', () => {
    fc.assert(
      fc.property(letters, stopList, fc.array(fc.nat(4)), fc.boolean(), (text, stops, sizes, includeStop) => {
        const match = naive(text, stops);
        const end = match === null ? text.length : match.end - (includeStop ? 0 : match.length);
        const found = run(new StopStringMatcher(stops, { includeStop }), cut(text, sizes));
        expect(found).toEqual({ text: text.slice(0, end), matched: match?.index ?? null });
      }),
      { numRuns: draws(400) },
    );
  });

  it('has sent everything but the longest possible beginning of a stop at any time', () => {
    fc.assert(
      fc.property(letters, stopList, (text, stops) => {
        fc.pre(naive(text, stops) === null);
        const { emit } = new StopStringMatcher(stops).push(text);
        const held = text.slice(emit.length);
        for (let start = 0; start <= text.length; start++) {
          const couldStop = stops.some((stop) => start < text.length && stop.startsWith(text.slice(start)));
          if (couldStop) {
            expect(start).toBe(emit.length);
            return;
          }
        }
        expect(held).toBe('');
      }),
      { numRuns: draws(200) },
    );
  });
});
