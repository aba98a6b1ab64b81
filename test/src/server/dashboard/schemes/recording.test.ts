import { describe, expect, it } from 'vitest';
import {
  type Recordings,
  type SchemeRecording,
  segmentsOf,
  tokensAt,
  totalsOf,
} from '../../../../../src/server/dashboard/page/schemes/recording.js';
import recorded from '../../../../../src/server/dashboard/page/schemes/recordings.json' with { type: 'json' };

const { schemes, maxNumSequences } = recorded as unknown as Recordings;
const [v1, inflight, fused] = schemes as [SchemeRecording, SchemeRecording, SchemeRecording];

describe('the recordings that the page plays', () => {
  it('are of the same work under the three schemes', () => {
    expect(schemes.map(({ modelType }) => modelType)).toEqual([
      'V1',
      'InflightBatching',
      'InflightFusedBatching',
    ]);
    const work = ({ requests }: SchemeRecording) =>
      requests.map(({ arrivalMs, promptTokens, newTokens }) => [arrivalMs, promptTokens, newTokens]);
    expect(work(inflight)).toEqual(work(v1));
    expect(work(fused)).toEqual(work(v1));
    expect(v1.requests.length).toBeGreaterThan(2 * maxNumSequences);
  });

  it.each(schemes)(
    '$modelType: each request goes from its arrival to its answer without a hole',
    (scheme) => {
      for (const request of scheme.requests) {
        const segments = segmentsOf(request);
        expect(segments[0]!.beginMs).toBe(request.arrivalMs);
        expect(segments.at(-1)!.endMs).toBe(request.endMs);
        for (const [index, { beginMs, endMs }] of segments.entries()) {
          expect(endMs).toBeGreaterThan(beginMs);
          if (index > 0) expect(beginMs).toBe(segments[index - 1]!.endMs);
        }
        expect(request.chunks.at(-1)![1]).toBeLessThanOrEqual(request.firstTokenMs + 1);
      }
    },
  );

  it.each(schemes)('$modelType: never more at once than there are places', ({ requests }) => {
    const inBatch = (ms: number) =>
      requests.filter(({ chunks, endMs }) => chunks[0]![0] < ms - 2 && ms + 2 < endMs).length;
    for (const { endMs, chunks } of requests) {
      expect(inBatch(endMs)).toBeLessThanOrEqual(maxNumSequences);
      expect(inBatch(chunks[0]![0])).toBeLessThanOrEqual(maxNumSequences);
    }
  });

  it('slots run empty with V1 alone, and its requests are answered with their batch', () => {
    const empty = ({ requests }: SchemeRecording) =>
      requests.filter((request) => segmentsOf(request).some(({ kind }) => kind === 'empty')).length;
    expect(empty(v1)).toBeGreaterThan(v1.requests.length / 2);
    expect([empty(inflight), empty(fused)]).toEqual([0, 0]);
    expect(v1.emptyShare).toBeGreaterThan(0.2);
    expect([inflight.emptyShare, fused.emptyShare]).toEqual([0, 0]);
  });

  it('totals are of what is played: all tokens are there at the end, none at the beginning, and never fewer later', () => {
    for (const scheme of schemes) {
      const { wallMs, tokensPerSecond } = totalsOf(scheme);
      const all = scheme.requests.reduce((sum, { newTokens }) => sum + newTokens, 0);
      expect(tokensAt(scheme, 0)).toBe(0);
      expect(tokensAt(scheme, wallMs)).toBe(all);
      expect(tokensPerSecond).toBeCloseTo((1000 * all) / wallMs, 6);
      let before = 0;
      for (let ms = 0; ms <= wallMs; ms += 50) {
        const tokens = tokensAt(scheme, ms);
        expect(tokens).toBeGreaterThanOrEqual(before);
        before = tokens;
      }
    }
  });
});
