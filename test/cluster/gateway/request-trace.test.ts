import { describe, expect, it } from 'vitest';
import type { TraceAttributes, TraceSpan } from '../../../callbacks/infer/trace-span.js';
import { RequestTrace } from '../../../cluster/gateway/request-trace.js';

/** A span that notes what is reported to it. */
class NotedSpan implements TraceSpan {
  readonly traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  readonly tracestate = '';
  readonly children: NotedSpan[] = [];
  readonly events: string[] = [];
  attributes: TraceAttributes = {};
  links: readonly TraceSpan[] = [];
  fault: string | null = null;
  ends = 0;
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  child(
    name: string,
    _: number,
    attributes: TraceAttributes = {},
    links: readonly TraceSpan[] = [],
  ): NotedSpan {
    const child = new NotedSpan(name);
    child.links = links;
    child.set(attributes);
    this.children.push(child);
    return child;
  }

  set(attributes: TraceAttributes): void {
    if (this.ends > 0) throw new Error(`${this.name} has ended.`);
    this.attributes = { ...this.attributes, ...attributes };
  }

  event(name: string): void {
    this.events.push(name);
  }

  fail(message: string): void {
    this.fault = message;
  }

  end(): void {
    this.ends++;
  }
}

const NAMES = { request: 'g-1', requestId: 'goose' };
const ROUTE = { pool: 'p', worker: null, isPrefill: false };

describe('the trace of a request in its gateway', () => {
  it('has a prompt that is computed elsewhere as an attempt, and every span ends once', () => {
    const root = new NotedSpan('POST');
    const trace = RequestTrace.begin(root, NAMES, 1)!;
    trace.onRoute({ pool: 'prefill', worker: 'w1', isPrefill: true });
    trace.onRouted('full', { cachedBlocks: 2, blocks: 5 });
    trace.onLease('w2');
    trace.onFall('moved', null, 0);
    trace.onAgain(2);
    trace.onRoute(ROUTE);
    trace.onLease('w3');
    trace.onEnd('answered', 4);
    trace.onEnd('error', 4);
    const [first, second] = root.children;
    expect(first).toMatchObject({ name: 'attempt 1', fault: null, links: [] });
    expect(first!.attributes).toMatchObject({
      ...{ 'skein.request_id': 'goose', 'skein.queue.request': 'g-1', 'skein.is_prefill': true },
      ...{ 'skein.pool': 'prefill', 'skein.worker': 'w2', 'skein.outcome': 'moved' },
      ...{ 'skein.route.cached_blocks': 2, 'skein.route.blocks': 5 },
    });
    expect(first!.children.map(({ name }) => name)).toEqual(['queue', 'route']);
    expect(first!.children[1]!.events).toEqual(['not taken: full']);
    expect(first!.children[1]!.attributes).toMatchObject({
      'skein.route': 'chosen',
      'skein.route.worker': 'w1',
    });
    expect(second).toMatchObject({ name: 'attempt 2', fault: null, links: [first] });
    expect(second!.attributes).toMatchObject({ 'skein.outcome': 'answered', 'skein.accepted_tokens': 4 });
    const all = [first!, second!].flatMap((span) => [span, ...span.children]);
    expect(all.map(({ ends }) => ends)).toEqual(all.map(() => 1));
  });

  it('tells what failed, once, where the last attempt was one too many', () => {
    const root = new NotedSpan('POST');
    const trace = RequestTrace.begin(root, NAMES, 1)!;
    trace.onRoute(ROUTE);
    trace.onFall('failed', 'no memory', 0);
    trace.onEnd('error', 0);
    expect(root.children).toHaveLength(1);
    expect(root.children[0]).toMatchObject({ fault: 'no memory', ends: 1 });
  });

  it('is bounded where one client asks for many answers, and none where it is not traced', () => {
    const root = new NotedSpan('POST');
    const traces = Array.from({ length: 40 }, () => RequestTrace.begin(root, NAMES, 1));
    expect(traces.filter((trace) => trace !== null)).toHaveLength(16);
    expect(RequestTrace.begin(undefined, NAMES, 1)).toBeNull();
  });
});
