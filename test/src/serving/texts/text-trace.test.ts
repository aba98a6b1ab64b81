import { describe, expect, it } from 'vitest';
import type { TraceSpan } from '../../../../callbacks/infer/trace-span.js';
import type { TokenTiming } from '../../../../callbacks/token-request.js';
import { TextTrace } from '../../../../src/serving/texts/text-trace.js';

/** A span that notes its children and their times. */
class NotedSpan {
  readonly children: NotedSpan[] = [];
  readonly name: string;
  readonly startMs: number;
  endMs = 0;

  constructor(name: string, startMs: number) {
    this.name = name;
    this.startMs = startMs;
  }

  child(name: string, startMs: number): NotedSpan {
    const child = new NotedSpan(name, startMs);
    this.children.push(child);
    return child;
  }

  set(): void {}
  event(): void {}
  fail(): void {}

  end(endMs = Number.NaN): void {
    this.endMs = endMs;
  }
}

function traced(timing: Partial<TokenTiming>) {
  const root = new NotedSpan('POST', performance.now());
  const about = { model: 'm', requestId: 'r', promptTokens: 1, maxTokens: 1, choices: 1 };
  const trace = TextTrace.begin(root as unknown as TraceSpan, about)!;
  trace.onTokens(1);
  trace.onEnd('stop', timing as TokenTiming);
  const [text] = root.children;
  return text!;
}

describe('the trace of an answer', () => {
  it('has its phases one behind the other, and none behind its end, where the clock of the engine is ahead', () => {
    const text = traced({
      firstScheduledMs: 1e6,
      firstTokenMs: 2e6,
      lastTokenMs: 3e6,
      numIterations: 1,
      numPauses: 0,
    });
    expect(text.children.map(({ name }) => name)).toEqual(['queue', 'context phase', 'generation phase']);
    let before = text.startMs;
    for (const { startMs, endMs } of text.children) {
      expect(startMs).toBeCloseTo(before, 6);
      expect(endMs).toBeGreaterThanOrEqual(startMs - 1e-6);
      expect(endMs).toBeLessThanOrEqual(text.endMs + 1e-6);
      before = endMs;
    }
  });

  it('has the phases that the engine told', () => {
    const text = traced({
      firstScheduledMs: -3,
      firstTokenMs: -2,
      lastTokenMs: -1,
      numIterations: 1,
      numPauses: 0,
    });
    const times = text.children.map(({ startMs, endMs }) => [startMs - text.startMs, endMs - text.startMs]);
    for (const [i, [begin, end]] of [
      [0, -3],
      [-3, -2],
      [-2, -1],
    ].entries()) {
      expect(times[i]![0]).toBeCloseTo(begin!, 0);
      expect(times[i]![1]).toBeCloseTo(end!, 0);
    }
  });

  it('has no queue and no context phase where the engine told nothing', () => {
    expect(traced({}).children.map(({ name }) => name)).toEqual(['generation phase']);
  });
});
