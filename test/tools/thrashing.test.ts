import { describe, expect, it } from 'vitest';
import { withSection } from '../../tools/document-section.js';
import { measureLoop, measureSimulation } from '../../tools/thrashing/measure.js';
import { overloadTrace } from '../../tools/thrashing/overload-trace.js';

const POOL = { numBlocks: 16, tokensPerBlock: 8, maxNumRequests: 8, maxNumTokens: 64 };
const TRACE = { requests: 30, rate: 1, promptLength: [4, 20] as const, newTokens: 16, seed: 3 };

describe('the overload trace', () => {
  it('is the same for a seed and has the lengths that were asked for', () => {
    const trace = overloadTrace(TRACE);
    expect(overloadTrace(TRACE)).toEqual(trace);
    expect(overloadTrace({ ...TRACE, seed: 4 })).not.toEqual(trace);
    for (const { promptLength, maxNewTokens } of trace) {
      expect(promptLength).toBeGreaterThanOrEqual(4);
      expect(promptLength).toBeLessThanOrEqual(20);
      expect(maxNewTokens).toBeGreaterThanOrEqual(1);
      expect(maxNewTokens).toBeLessThanOrEqual(64);
    }
    const arrivals = trace.map(({ arrivalIteration }) => arrivalIteration);
    expect(arrivals).toEqual(arrivals.toSorted((a, b) => a - b));
  });
});

describe('thrashing under overload', () => {
  const trace = overloadTrace(TRACE);

  it.each([
    { policy: 'MAX_UTILIZATION' as const },
    { policy: 'MAX_UTILIZATION' as const, startHorizon: 8 },
    { policy: 'GUARANTEED_NO_EVICT' as const },
  ])('is measured alike in the simulation and in the loop: %o', (setting) => {
    expect(measureLoop(trace, POOL, setting, null)).toEqual(measureSimulation(trace, POOL, setting));
  });

  it('is there, and a horizon takes it away', () => {
    const without = measureSimulation(trace, POOL, { policy: 'MAX_UTILIZATION' });
    const some = measureSimulation(trace, POOL, { policy: 'MAX_UTILIZATION', startHorizon: 8 });
    const whole = measureSimulation(trace, POOL, { policy: 'MAX_UTILIZATION', startHorizon: 64 });
    expect(without.pauses).toBeGreaterThan(10);
    expect(some.pauses).toBeLessThan(without.pauses / 2);
    expect(some.computedTokens).toBeLessThan(without.computedTokens);
    expect(whole).toMatchObject({ pauses: 0, recomputedTokens: 0 });
  });

  it('counts only what went through the model for answers that end by themselves', () => {
    const limited = trace.map((request) => ({ ...request, maxNewTokens: 64 }));
    const measured = measureLoop(limited, POOL, { policy: 'GUARANTEED_NO_EVICT' }, 0);
    const prompts = trace.reduce((sum, { promptLength }) => sum + promptLength, 0);
    expect(measured).toMatchObject({ pauses: 0, recomputedTokens: 0 });
    expect(measured.computedTokens).toBeLessThan(prompts + 63 * trace.length);
  });
});

describe('withSection', () => {
  it('replaces what stands between the marks, and nothing else', () => {
    const text = 'a\n<!-- x -->\n\nold\n\n<!-- /x -->\nb\n';
    const result = withSection(text, 'x', 'new\n');
    expect(result).toBe('a\n<!-- x -->\n\nnew\n\n<!-- /x -->\nb\n');
    expect(withSection(result, 'x', 'new')).toBe(result);
    expect(() => withSection(text, 'y', 'new')).toThrow('no section between <!-- y --> and <!-- /y -->');
  });
});
